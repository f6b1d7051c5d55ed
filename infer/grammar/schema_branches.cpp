#include "infer/grammar/schema_branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "infer/grammar/json_schema.h"

namespace medusa {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostBranches = 256;
constexpr int kMostReferences = 16;  // one behind the other
constexpr int kDeepest = 8;          // properties of properties

/// The schema that a reference stands for; none where it is not found.
const ordered_json* resolved(const ordered_json& root, const ordered_json* schema) {
  for (int i = 0; i < kMostReferences; ++i) {
    if (!schema->is_object() || !schema->contains("$ref")) return schema;
    const ordered_json& reference = schema->at("$ref");
    if (!reference.is_string()) return nullptr;
    const std::string text = reference.get<std::string>();
    if (!text.starts_with("#/") && text != "#") return nullptr;
    const std::string pointer = text.substr(1);
    if (pointer.find('~') != std::string::npos) return nullptr;
    const ordered_json::json_pointer place(pointer);
    if (!root.contains(place)) return nullptr;
    schema = &root.at(place);
  }
  return nullptr;
}

/// The list of a schema's constants; null where it has none.
/// @param room  holds that of a single one.
const ordered_json* constants_of(const ordered_json& schema, ordered_json& room) {
  if (!schema.is_object()) return nullptr;
  if (schema.contains("const")) return &(room = ordered_json::array({schema["const"]}));
  const bool has_list = schema.contains("enum") && schema["enum"].is_array();
  return has_list ? &schema["enum"] : nullptr;
}

/// The types that a schema itself names; none where it does not.
std::optional<JsonTypes> named_types(const ordered_json& schema) {
  JsonTypes out = 0;
  ordered_json room;
  if (const ordered_json* values = constants_of(schema, room); values != nullptr) {
    for (const ordered_json& each : *values) out |= types_of_value(each);
    return out;
  }
  if (!schema.contains("type")) return std::nullopt;
  const ordered_json& type = schema["type"];
  for (const ordered_json& each : type.is_array() ? type : ordered_json::array({type}))
    out |= each.is_string() ? type_named(each.get<std::string>()) : kAnyType;
  return out;
}

/// The schemas that a value's schema leads to; null where it leads to none.
const ordered_json* branches_of(const ordered_json& schema) {
  for (const char* word : {"anyOf", "oneOf", "allOf"})
    if (schema.contains(word)) return &schema[word];
  return nullptr;
}

bool forbids_property(const ordered_json& schema, const std::string& name) {
  return schema.contains("additionalProperties") && schema["additionalProperties"] == false &&
         !schema.contains("patternProperties") &&
         !(schema.contains("properties") && schema["properties"].contains(name));
}

/// Tells schemas apart, each pair once.
class Comparison {
 public:
  Comparison(const ordered_json& root, const SchemaTime& time) : root_(root), time_(time) {}

  /// No value is of both.
  /// @param one, other  stay where they are.
  bool are_apart(const ordered_json& one, const ordered_json& other, int depth = 0) {
    time_.check();
    if (depth > kDeepest) return false;
    const ordered_json* left = meant_by(one);
    const ordered_json* right = meant_by(other);
    if (left == nullptr || right == nullptr) return false;
    const auto [found, is_new] = known_.try_emplace({left, right, depth}, false);
    if (is_new) found->second = compare(*left, *right, depth);  // a map's entries do not move
    return found->second;
  }

 private:
  /// What is asked of a schema again and again.
  struct Traits {
    JsonTypes types = kAnyType;
    std::optional<std::set<nlohmann::json>> constants;  // whatever the order of their keys
    std::set<std::string> required;
  };

  /// As resolved().
  const ordered_json* meant_by(const ordered_json& schema) {
    const auto [found, is_new] = resolved_.try_emplace(&schema, nullptr);
    if (is_new) found->second = resolved(root_, &schema);
    return found->second;
  }

  const Traits& traits_of(const ordered_json& schema) {
    const auto [found, is_new] = traits_.try_emplace(&schema);
    if (!is_new) return found->second;
    Traits& traits = found->second;
    traits.types = types_of(root_, schema, time_);
    ordered_json room;
    if (const ordered_json* list = constants_of(schema, room); list != nullptr) {
      traits.constants.emplace();
      for (const ordered_json& each : *list) {
        time_.check();
        traits.constants->insert(nlohmann::json(each));
      }
    }
    if (schema.is_object() && schema.contains("required") && schema["required"].is_array())
      for (const ordered_json& each : schema["required"])
        if (each.is_string()) traits.required.insert(each.get<std::string>());
    return traits;
  }

  bool compare(const ordered_json& left, const ordered_json& right, int depth) {
    const Traits &of_left = traits_of(left), &of_right = traits_of(right);
    if ((of_left.types & of_right.types) == 0) return true;
    if (of_left.constants && of_right.constants) {
      const bool fewer = of_left.constants->size() < of_right.constants->size();
      const auto& few = fewer ? *of_left.constants : *of_right.constants;
      const auto& many = fewer ? *of_right.constants : *of_left.constants;
      return std::none_of(few.begin(), few.end(),
                          [&](const auto& each) { return many.contains(each); });
    }
    if (of_left.types != kObjectType || of_right.types != kObjectType) return false;
    return properties_tell(left, right, depth) || properties_tell(right, left, depth);
  }

  /// A property that one requires tells objects of both apart.
  bool properties_tell(const ordered_json& one, const ordered_json& other, int depth) {
    const std::set<std::string>& required_by_other = traits_of(other).required;
    const auto tells = [&](const std::string& name) {
      time_.check();
      if (forbids_property(other, name)) return true;
      const bool both_have = one.contains("properties") && one["properties"].contains(name) &&
                             other.contains("properties") && other["properties"].contains(name);
      return both_have && required_by_other.contains(name) &&
             are_apart(one["properties"][name], other["properties"][name], depth + 1);
    };
    const std::set<std::string>& required = traits_of(one).required;
    return std::any_of(required.begin(), required.end(), tells);
  }

  const ordered_json& root_;
  const SchemaTime& time_;
  std::map<const ordered_json*, const ordered_json*> resolved_;
  std::map<const ordered_json*, Traits> traits_;
  std::map<std::tuple<const ordered_json*, const ordered_json*, int>, bool> known_;
};

}  // namespace

JsonTypes type_named(std::string_view name) {
  if (name == "null") return kNullType;
  if (name == "boolean") return kBooleanType;
  if (name == "integer") return kIntegerType;
  if (name == "number") return kIntegerType | kFractionType;
  if (name == "string") return kStringType;
  if (name == "array") return kArrayType;
  return name == "object" ? kObjectType : 0;
}

JsonTypes types_of_value(const ordered_json& value) {
  if (value.is_null()) return kNullType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_number_integer()) return kIntegerType;
  if (value.is_number()) {
    const auto number = value.get<double>();
    return number == std::floor(number) ? kIntegerType : kFractionType;  // 1.0 is an integer
  }
  if (value.is_string()) return kStringType;
  return value.is_array() ? kArrayType : kObjectType;
}

JsonTypes types_of(const ordered_json& root, const ordered_json& schema, const SchemaTime& time) {
  JsonTypes out = 0;
  std::set<const ordered_json*> seen;
  std::vector<const ordered_json*> open{&schema};
  while (!open.empty()) {
    time.check();
    const ordered_json* meant = resolved(root, open.back());
    open.pop_back();
    if (meant == nullptr || !meant->is_object()) return kAnyType;
    if (!seen.insert(meant).second) continue;
    if (const auto types = named_types(*meant)) {
      out |= *types;
      continue;
    }
    const ordered_json* branches = branches_of(*meant);
    if (branches == nullptr || !branches->is_array()) return kAnyType;
    for (const ordered_json& each : *branches) open.push_back(&each);
  }
  return out;
}

void expect_one_of_them(const ordered_json& root, const ordered_json& branches,
                        const std::string& place, const SchemaTime& time) {
  if (branches.size() > kMostBranches)
    throw UnsupportedSchema(fmt::format(
        "the JSON schema has {} branches at {:?}, expected at most {}; write anyOf where several "
        "may hold",
        branches.size(), place, kMostBranches));
  Comparison comparison(root, time);
  for (size_t i = 0; i < branches.size(); ++i)
    for (size_t j = i + 1; j < branches.size(); ++j)
      if (!comparison.are_apart(branches[i], branches[j]))
        throw UnsupportedSchema(fmt::format(
            "the JSON schema has branches {} and {} at {:?} of which one value may be, expected "
            "other types, or a required property of other constants; write anyOf, or add one",
            i, j, place));
}

}  // namespace medusa
