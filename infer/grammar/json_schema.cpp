#include "infer/grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "infer/grammar/regex_syntax.h"
#include "infer/grammar/schema_branches.h"
#include "infer/grammar/schema_numbers.h"
#include "infer/grammar/schema_refusals.h"
#include "infer/grammar/string_formats.h"

namespace medusa {
namespace {

using nlohmann::ordered_json;
using Words = std::set<std::string_view>;

constexpr int64_t kLargestCount = std::numeric_limits<int32_t>::max();
constexpr int64_t kLongestText = 1'000'000;  // characters; no answer has as many
// Where properties are counted, the time to compile grows with the fourth power of their number.
constexpr size_t kMostCounted = 32;

// What restricts values, by the type that it restricts.
const Words kOfNumbers{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
const Words kOfStrings{"minLength", "maxLength", "pattern", "format"};
const Words kOfArrays{"items",       "prefixItems", "unevaluatedItems", "additionalItems",
                      "minItems",    "maxItems",    "uniqueItems",      "contains",
                      "minContains", "maxContains"};
const Words kOfObjects{"properties",
                       "required",
                       "minProperties",
                       "maxProperties",
                       "propertyNames",
                       "patternProperties",
                       "dependencies",
                       "additionalProperties",
                       "unevaluatedProperties",
                       "dependentRequired",
                       "dependentSchemas"};
const Words kOfAll{"$ref", "const", "enum", "anyOf", "oneOf", "allOf", "type"};
// JSON Schema's own formats of which there is no expression. Others say what a text is for.
const Words kUnheldFormats{"regex",        "iri",          "iri-reference",        "idn-email",
                           "idn-hostname", "uri-template", "relative-json-pointer"};
// The library forgets these where it looks up what it made of an equal schema, even where they are
// names of properties or parts of a constant.
const Words kForgotten{"title",    "default",   "description", "examples", "deprecated",
                       "readOnly", "writeOnly", "$comment",    "$schema"};

bool is_forgotten(const std::string& key) {
  return kForgotten.contains(key) || key.find('"') != std::string::npos;
}

bool has_forgotten_keys(const ordered_json& value) {
  if (!value.is_structured()) return false;
  for (const auto& [key, each] : value.items())
    if ((value.is_object() && is_forgotten(key)) || has_forgotten_keys(each)) return true;
  return false;
}

class SchemaReader {
 public:
  SchemaReader(const ordered_json& root, const SchemaTime& time) : root_(root), time_(time) {}

  ordered_json read() {
    ordered_json out = read_schema(root_, "");
    for (const auto& [place, target] : references_)
      if (!schemas_.contains(target))
        refuse_no_schema(place, "no schema there",
                         "a schema in $defs or under another keyword of schemas");
    return out;
  }

 private:
  static void refuse_all_of(const ordered_json& schema, const std::string& place,
                            const Words& words) {
    for (const std::string_view word : words)
      if (schema.contains(word)) refuse_keyword(place, word);
  }

  ordered_json read_schema(const ordered_json& schema, const std::string& place,
                           std::string_view implied_type = "") {
    schemas_.insert(place);
    time_.check();
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) refuse_schema(place, "false", "a schema that a value can have");
      return schema;
    }
    if (!schema.is_object()) refuse_no_schema(place, "no schema", "an object, or true");
    ordered_json out = schema;
    read_definitions(out, place);
    refuse_all_of(schema, place, {"not", "if", "then", "else", "$dynamicRef", "$recursiveRef"});
    if (!place.empty() && schema.contains("$id")) refuse_keyword(place, "$id below the root");
    const std::array deciding{"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};
    const auto decides = std::find_if(deciding.begin(), deciding.end(),
                                      [&](const char* word) { return schema.contains(word); });
    if (decides != deciding.end())
      read_deciding(out, *decides, place);
    else
      read_types(out, place, implied_type);
    if (confusable_.contains(place)) out["x-place"] = place;  // unlike each other schema
    return out;
  }

  void read_definitions(ordered_json& schema, const std::string& place) {
    for (const char* word : {"$defs", "definitions"}) {
      if (!schema.contains(word)) continue;
      read_named(schema[word], place + "/" + word);
      for (const auto& [name, each] : schema[word].items())
        if (is_forgotten(name)) confusable_.insert(place);
    }
  }

  /// An object whose values are schemas.
  void read_named(ordered_json& schemas, const std::string& place) {
    if (!schemas.is_object()) refuse_no_schema(place, "no object", "an object of schemas");
    for (const auto& [name, each] : schemas.items()) each = read_schema(each, place + "/" + name);
  }

  void read_list(ordered_json& schemas, const std::string& place) {
    if (!schemas.is_array() || schemas.empty())
      refuse_no_schema(place, "no list of schemas", "at least one schema in a list");
    for (size_t i = 0; i < schemas.size(); ++i) {
      schemas[i] = read_schema(schemas[i], fmt::format("{}/{}", place, i));
      if (schemas[i].is_boolean()) schemas[i] = ordered_json::object();  // not known in each list
    }
  }

  /// A schema with a keyword beside which the library reads no other one.
  void read_deciding(ordered_json& schema, const std::string& decides, const std::string& place) {
    const bool has_values = decides == "const" || decides == "enum";
    for (const Words* words : {&kOfAll, &kOfNumbers, &kOfStrings, &kOfArrays, &kOfObjects})
      for (const std::string_view word : *words)
        if (word != decides && schema.contains(word) && !(has_values && word == "type"))
          refuse_keyword(place, fmt::format("{} beside {}", word, decides));
    const std::string below = place + "/" + decides;
    if (has_values) {
      read_values(schema, decides, place);
    } else if (decides == "$ref") {
      references_.emplace_back(below, target_of(schema[decides], below));
    } else {
      read_list(schema[decides], below);
      if (decides == "allOf" && schema[decides].size() > 1)
        refuse_schema(below, "several schemas", "one, with all of the others' keywords");
      if (decides == "oneOf") {
        expect_one_of_them(root_, schema[decides], below, time_);
        ordered_json branches = std::move(schema[decides]);
        schema.erase(decides);
        schema["anyOf"] = std::move(branches);  // the same, as no two of them hold at once
      }
    }
  }

  void read_values(ordered_json& schema, const std::string& decides, const std::string& place) {
    const ordered_json& value = schema[decides];
    if (decides == "enum" && (!value.is_array() || value.empty()))
      refuse_no_schema(place + "/enum", "no list of values", "at least one value in a list");
    if (has_forgotten_keys(value)) confusable_.insert(place);
    if (has_long_numbers(value))
      refuse_schema(place + "/" + decides, "a number of more digits than the library keeps",
                    "numbers of magnitudes below 2^53");
    if (!schema.contains("type")) return;
    const JsonTypes types = types_named(schema["type"], place);
    const ordered_json values = decides == "enum" ? value : ordered_json::array({value});
    for (const ordered_json& each : values)
      if ((types_of_value(each) & types) == 0)
        refuse_schema(place + "/" + decides, "a value of another type than the schema's",
                      "values of its type");
  }

  static JsonTypes types_named(const ordered_json& type, const std::string& place) {
    const auto names = type.is_array() ? type : ordered_json::array({type});
    JsonTypes out = 0;
    for (const ordered_json& each : names) {
      const JsonTypes one = each.is_string() ? type_named(each.get<std::string>()) : 0;
      if (one == 0)
        refuse_no_schema(
            place + "/type", "no type",
            "string, number, integer, boolean, null, array, object or a list of these");
      out |= one;
    }
    if (out == 0) refuse_no_schema(place + "/type", "an empty list", "at least one type");
    return out;
  }

  /// A place in the schema that a reference names.
  std::string target_of(const ordered_json& reference, const std::string& place) const {
    const std::string text = reference.is_string() ? reference.get<std::string>() : "";
    if (text == "#") return "";
    // The library looks the parts up as they stand, and leaves empty ones out.
    const bool is_plain = text.size() > 2 && text.starts_with("#/") && !text.ends_with('/') &&
                          text.find("//") == std::string::npos &&
                          text.find_first_of("~%") == std::string::npos;
    if (!is_plain)
      refuse_schema(place, "a reference that is not looked up",
                    "one of this schema, as in \"#/$defs/name\", without ~ and %");
    const ordered_json* at = &root_;
    for (size_t begin = 2; begin <= text.size();) {
      const size_t end = std::min(text.find('/', begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      if (at->is_array())
        refuse_schema(place, "a reference through a list", "one to a schema in $defs, for example");
      if (!at->is_object() || !at->contains(part))
        refuse_no_schema(place, fmt::format("{:?}, which is not there", text),
                         "a place of the schema");
      at = &(*at)[part];
      begin = end + 1;
    }
    return text.substr(1);
  }

  void read_types(ordered_json& schema, const std::string& place, std::string_view implied_type) {
    JsonTypes types = 0;
    if (schema.contains("type"))
      types = types_named(schema["type"], place);
    else if (!implied_type.empty())
      types = type_named(implied_type);
    else if (schema.contains("properties") || schema.contains("additionalProperties") ||
             schema.contains("unevaluatedProperties"))
      types = kObjectType;  // as the library takes them
    else if (schema.contains("items") || schema.contains("prefixItems") ||
             schema.contains("unevaluatedItems"))
      types = kArrayType;
    else
      for (const Words* words : {&kOfNumbers, &kOfStrings, &kOfArrays, &kOfObjects})
        for (const std::string_view word : *words)
          if (schema.contains(word)) refuse_keyword(place, fmt::format("{} without type", word));
    if ((types & kFractionType) != 0) {
      expect_supported_number(schema, place);
      leave_out_integer(schema);
    } else if ((types & kIntegerType) != 0) {
      expect_supported_integer(schema, place);
    }
    if ((types & kStringType) != 0) read_string(schema, place);
    if ((types & kArrayType) != 0) read_array(schema, place);
    if ((types & kObjectType) != 0) read_object(schema, place);
  }

  /// Where numbers may come, integers are among them.
  static void leave_out_integer(ordered_json& schema) {
    if (!schema.contains("type") || !schema["type"].is_array()) return;
    ordered_json types = ordered_json::array();
    for (const ordered_json& each : schema["type"])
      if (each != "integer") types.push_back(each);
    schema["type"] = std::move(types);
  }

  static void expect_count(const ordered_json& schema, const std::string& place,
                           std::string_view word) {
    if (!schema.contains(word)) return;
    const ordered_json& value = schema.at(word);
    const bool is_count = value.is_number_integer() && value.get<double>() >= 0 &&
                          value.get<double>() <= static_cast<double>(kLargestCount);
    if (!is_count)
      refuse_no_schema(fmt::format("{}/{}", place, word), json_text(value),
                       fmt::format("an integer from 0 to {}", kLargestCount));
  }

  /// @param least  that there are in any case, of what `most` counts.
  static void expect_room(const ordered_json& schema, const std::string& place, const char* least,
                          const char* most, size_t known_least = 0) {
    expect_count(schema, place, least);
    expect_count(schema, place, most);
    if (!schema.contains(most)) return;
    const auto wanted = std::max(static_cast<int64_t>(known_least),
                                 schema.contains(least) ? schema[least].get<int64_t>() : 0);
    if (wanted > schema[most].get<int64_t>())
      refuse_schema(fmt::format("{}/{}", place, most), json_text(schema[most]),
                    fmt::format("at least {}, as many as there must be", wanted));
  }

  void read_string(ordered_json& schema, const std::string& place) const {
    expect_room(schema, place, "minLength", "maxLength");
    for (const char* word : {"pattern", "format"})
      if (schema.contains(word) && !schema[word].is_string())
        refuse_no_schema(place + "/" + word, "no text", "a text");
    std::string pattern;  // of the format
    if (schema.contains("format")) {
      const std::string format = schema["format"].get<std::string>();
      if (kUnheldFormats.contains(format))
        refuse_schema(place + "/format", fmt::format("{:?}", format),
                      fmt::format("one of {}", formats_with_patterns()));
      pattern = pattern_of_format(format);
    }
    const bool has_format = !pattern.empty();
    const bool has_pattern = schema.contains("pattern");
    if (has_format && has_pattern) refuse_keyword(place, "pattern beside format");
    for (const char* word : {"minLength", "maxLength"})
      if (schema.contains(word) && (has_format || has_pattern))
        refuse_keyword(place,
                       fmt::format("{} beside {}", word, has_pattern ? "pattern" : "format"));
    // The library's own expressions of formats have texts that are not of the format.
    schema.erase("format");
    if (has_pattern) pattern = schema["pattern"].get<std::string>();
    if (pattern.empty() && (schema.contains("minLength") || schema.contains("maxLength")))
      pattern = pattern_of_length(schema);
    for (const char* word : {"minLength", "maxLength"}) schema.erase(word);
    if (!pattern.empty()) schema["pattern"] = supported_pattern(pattern, place);
  }

  /// The library's own expression of a length has texts with control characters (xgrammar 0.2.8).
  static std::string pattern_of_length(const ordered_json& schema) {
    const int64_t least = schema.value("minLength", int64_t{0});
    const int64_t most = schema.value("maxLength", kLargestCount);
    return most >= kLongestText ? fmt::format("^[\\s\\S]{{{},}}$", std::min(least, kLongestText))
                                : fmt::format("^[\\s\\S]{{{},{}}}$", least, most);
  }

  std::string supported_pattern(const std::string& pattern, const std::string& place) const {
    try {
      return regex_of_json_string(pattern, time_);
    } catch (const UnsupportedRegex& error) {
      throw UnsupportedSchema(
          fmt::format("the JSON schema at {}: {}", shown_place(place), error.what()));
    }
  }

  void read_array(ordered_json& schema, const std::string& place) {
    refuse_all_of(schema, place, {"contains", "minContains", "maxContains", "additionalItems"});
    if (schema.contains("uniqueItems") && schema["uniqueItems"] != false)
      refuse_keyword(place, "uniqueItems");
    if (schema.contains("unevaluatedItems")) refuse_keyword(place, "unevaluatedItems");
    const bool has_first = schema.contains("prefixItems") && schema["prefixItems"].is_array();
    expect_room(schema, place, "minItems", "maxItems",
                has_first ? schema["prefixItems"].size() : 0);
    if (schema.contains("prefixItems")) read_list(schema["prefixItems"], place + "/prefixItems");
    if (schema.contains("items") && schema["items"] != false)
      schema["items"] = read_schema(schema["items"], place + "/items");
  }

  void read_object(ordered_json& schema, const std::string& place) {
    refuse_all_of(schema, place, {"dependencies", "dependentRequired", "dependentSchemas"});
    ordered_json none = ordered_json::object();
    ordered_json& properties = schema.contains("properties") ? schema["properties"] : none;
    read_named(properties, place + "/properties");
    for (const auto& [name, each] : properties.items())
      if (is_forgotten(name)) confusable_.insert(place);
    read_required(schema, properties, place);
    for (const char* word : {"additionalProperties", "unevaluatedProperties"})
      if (schema.contains(word) && schema[word] != false)
        schema[word] = read_schema(schema[word], place + "/" + word);
    read_names(schema, place);
    read_property_counts(schema, properties, place);
  }

  void read_required(const ordered_json& schema, const ordered_json& properties,
                     const std::string& place) const {
    if (!schema.contains("required")) return;
    const std::string below = place + "/required";
    if (!schema["required"].is_array()) refuse_no_schema(below, "no list", "a list of names");
    for (const ordered_json& each : schema["required"]) {
      time_.check();
      if (!each.is_string()) refuse_no_schema(below, json_text(each), "a list of names");
      if (!properties.contains(each.get<std::string>()))
        refuse_schema(below, json_text(each), "names that properties describes");
    }
  }

  /// Whether keys may come that properties does not name.
  static bool is_open(const ordered_json& schema) {
    for (const char* word : {"additionalProperties", "unevaluatedProperties"})
      if (schema.contains(word)) return schema[word] != false;
    return false;
  }

  /// Beside keys by pattern or by a schema the library leaves other keywords out.
  static void expect_alone(const ordered_json& schema, const std::string& place,
                           std::string_view keyword, bool harmless) {
    if (schema.contains("properties") && !schema["properties"].empty())
      refuse_keyword(place, fmt::format("{} beside properties", keyword));
    for (const char* other : {"additionalProperties", "unevaluatedProperties"})
      if (schema.contains(other) && schema[other] != harmless)
        refuse_keyword(place, fmt::format("{} beside {}", keyword, other));
  }

  void read_names(ordered_json& schema, const std::string& place) {
    const bool has_patterns = schema.contains("patternProperties");
    if (has_patterns) {
      expect_alone(schema, place, "patternProperties", false);
      const std::string below = place + "/patternProperties";
      ordered_json& patterns = schema["patternProperties"];
      read_named(patterns, below);
      if (patterns.size() > 1)
        refuse_schema(below, "several patterns", "one, as a key may match several");
      ordered_json supported = ordered_json::object();
      for (const auto& [pattern, each] : patterns.items()) {
        supported[supported_pattern(pattern, below)] = each;
        if (is_forgotten(pattern)) confusable_.insert(place);
      }
      patterns = std::move(supported);
    }
    if (!schema.contains("propertyNames")) return;
    if (has_patterns) refuse_keyword(place, "propertyNames beside patternProperties");
    expect_alone(schema, place, "propertyNames", true);
    const std::string below = place + "/propertyNames";
    const ordered_json& names = schema["propertyNames"];
    if (!names.is_object()) refuse_no_schema(below, "no object", "a schema of texts");
    refuse_all_of(names, below, {"$ref", "anyOf", "oneOf", "allOf"});
    schema["propertyNames"] = read_schema(names, below, "string");
    if ((types_of(root_, names, time_) & ~kStringType) != 0 &&
        (names.contains("type") || names.contains("enum") || names.contains("const")))
      refuse_schema(below, "values that are no texts", "a schema of texts");
  }

  static void read_property_counts(const ordered_json& schema, const ordered_json& properties,
                                   const std::string& place) {
    expect_room(schema, place, "minProperties", "maxProperties",
                schema.contains("required") ? schema["required"].size() : 0);
    for (const char* word : {"minProperties", "maxProperties"})
      if (schema.contains(word) && properties.size() > kMostCounted)
        refuse_keyword(place, fmt::format("{} beside more than {} properties", word, kMostCounted));
    const bool may_have_others =
        is_open(schema) || schema.contains("patternProperties") || schema.contains("propertyNames");
    if (schema.contains("minProperties") && !may_have_others &&
        schema["minProperties"] > properties.size())
      refuse_keyword(place,
                     "minProperties above the number of its properties, without "
                     "additionalProperties");
    if (schema.contains("minProperties") && schema["minProperties"] > 1 && may_have_others)
      refuse_keyword(place,
                     "minProperties above 1 where the schema does not name each key, so "
                     "that one may come twice");
  }

  const ordered_json& root_;
  const SchemaTime& time_;
  std::set<std::string> confusable_;  // places, too: the library would take them for others
  std::set<std::string> schemas_;     // places, as JSON pointers
  std::vector<std::pair<std::string, std::string>> references_;  // place and target
};

}  // namespace

nlohmann::ordered_json supported_schema(const nlohmann::ordered_json& schema,
                                        const SchemaTime& time) {
  return SchemaReader(schema, time).read();
}

}  // namespace medusa
