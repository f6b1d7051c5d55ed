#include "infer/grammar/schema_branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
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

/// The constants of a schema, equal whatever the order of their keys; nothing where it has none.
std::optional<std::vector<nlohmann::json>> constants(const ordered_json& schema) {
  if (!schema.is_object()) return std::nullopt;
  if (schema.contains("const")) return std::vector<nlohmann::json>{schema["const"]};
  if (schema.contains("enum") && schema["enum"].is_array())
    return std::vector<nlohmann::json>(schema["enum"].begin(), schema["enum"].end());
  return std::nullopt;
}

bool requires_property(const ordered_json& schema, const std::string& name) {
  return schema.contains("required") && schema["required"].is_array() &&
         std::find(schema["required"].begin(), schema["required"].end(), name) !=
             schema["required"].end();
}

bool forbids_property(const ordered_json& schema, const std::string& name) {
  return schema.contains("additionalProperties") && schema["additionalProperties"] == false &&
         !schema.contains("patternProperties") &&
         !(schema.contains("properties") && schema["properties"].contains(name));
}

bool are_apart(const ordered_json& root, const ordered_json& one, const ordered_json& other,
               int depth);

/// A property that one requires tells objects of both apart.
bool properties_tell(const ordered_json& root, const ordered_json& one, const ordered_json& other,
                     int depth) {
  if (!one.contains("required") || !one["required"].is_array()) return false;
  for (const ordered_json& each : one["required"]) {
    if (!each.is_string()) continue;
    const std::string name = each.get<std::string>();
    if (forbids_property(other, name)) return true;
    const bool both_have = one.contains("properties") && one["properties"].contains(name) &&
                           other.contains("properties") && other["properties"].contains(name);
    if (both_have && requires_property(other, name) &&
        are_apart(root, one["properties"][name], other["properties"][name], depth + 1))
      return true;
  }
  return false;
}

/// No value is of both.
bool are_apart(const ordered_json& root, const ordered_json& one, const ordered_json& other,
               int depth) {
  if (depth > kDeepest) return false;
  const ordered_json* left = resolved(root, &one);
  const ordered_json* right = resolved(root, &other);
  if (left == nullptr || right == nullptr) return false;
  if ((types_of(root, *left) & types_of(root, *right)) == 0) return true;
  const auto of_left = constants(*left), of_right = constants(*right);
  if (of_left && of_right)
    return std::none_of(of_left->begin(), of_left->end(), [&](const auto& each) {
      return std::find(of_right->begin(), of_right->end(), each) != of_right->end();
    });
  if (types_of(root, *left) != kObjectType || types_of(root, *right) != kObjectType) return false;
  return properties_tell(root, *left, *right, depth) || properties_tell(root, *right, *left, depth);
}

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

JsonTypes types_of(const ordered_json& root, const ordered_json& schema) {
  const ordered_json* meant = resolved(root, &schema);
  if (meant == nullptr || !meant->is_object()) return kAnyType;
  if (const auto values = constants(*meant)) {
    JsonTypes out = 0;
    for (const auto& each : *values) out |= types_of_value(each);
    return out;
  }
  if (!meant->contains("type")) return kAnyType;
  const ordered_json& type = (*meant)["type"];
  JsonTypes out = 0;
  for (const ordered_json& each : type.is_array() ? type : ordered_json::array({type}))
    out |= each.is_string() ? type_named(each.get<std::string>()) : kAnyType;
  return out;
}

void expect_one_of_them(const ordered_json& root, const ordered_json& branches,
                        const std::string& place) {
  if (branches.size() > kMostBranches)
    throw UnsupportedSchema(fmt::format(
        "the JSON schema has {} branches at {:?}, expected at most {}; write anyOf where several "
        "may hold",
        branches.size(), place, kMostBranches));
  for (size_t i = 0; i < branches.size(); ++i)
    for (size_t j = i + 1; j < branches.size(); ++j)
      if (!are_apart(root, branches[i], branches[j], 0))
        throw UnsupportedSchema(fmt::format(
            "the JSON schema has branches {} and {} at {:?} of which one value may be, expected "
            "other types, or a required property of other constants; write anyOf, or add one",
            i, j, place));
}

}  // namespace medusa
