// Schemas that a grammar follows to the letter, and those that are refused by name.
#include "infer/grammar/json_schema.h"

#include <gtest/gtest.h>

#include "infer/grammar/schema_branches.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

using nlohmann::ordered_json;

std::string schema_refusal(const std::string& schema) {
  return fixtures::error_text([&] { supported_schema(ordered_json::parse(schema)); });
}

TEST(JsonSchema, WhatClientsWritePasses) {
  for (const char* each :
       {"true",
        "{}",
        R"({"title": "x", "description": "y", "x-mine": [1]})",
        R"({"type": "object", "properties": {"a": {"type": "string", "title": "A"}},
            "required": ["a"], "additionalProperties": false, "title": "Model"})",
        R"({"enum": ["a", "b"], "type": "string"})",
        R"({"const": 1, "type": "integer"})",
        R"({"const": 1.0, "type": "integer"})",
        R"({"type": ["string", "null"], "maxLength": 3})",
        R"({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null})",
        R"({"allOf": [{"$ref": "#/$defs/a"}], "description": "d", "$defs": {"a": {}}})",
        R"({"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 2})",
        R"({"type": "integer", "multipleOf": 7})",
        R"({"type": "number", "exclusiveMinimum": 0})",
        R"({"type": "string", "minLength": 1, "maxLength": 5})",
        R"({"type": "string", "pattern": "^[a-z]+$"})",
        R"({"type": "string", "format": "uuid"})",
        R"({"type": "string", "format": "password", "minLength": 2})",
        R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": false})",
        R"({"type": "array", "prefixItems": [{}, true], "items": false})",
        R"({"type": "boolean", "minLength": 3})",
        R"({"type": "object", "minProperties": 1, "additionalProperties": true})",
        R"({"type": ["integer", "number"], "minimum": 2.5})",
        R"({"type": "number", "maximum": 0.1})",
        R"({"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.100002})",
        R"({"$id": "http://a.b/c", "type": "null"})",
        R"({"const": 9000000000000000})",
        R"({"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991})",
        R"({"type": "object", "patternProperties": {"^a$": {}}, "additionalProperties": false})",
        R"({"type": "object", "propertyNames": {"pattern": "^a+$"}})",
        R"({"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#"}}})"})
    EXPECT_EQ(schema_refusal(each), "(no error)") << each;
}

/// Two objects whose required properties are the same two again.
ordered_json schema_of_itself(int num_properties) {
  ordered_json both = {{"oneOf", {{{"$ref", "#/$defs/a"}}, {{"$ref", "#/$defs/b"}}}}};
  for (const char* name : {"a", "b"}) {
    ordered_json object{{"type", "object"}, {"required", ordered_json::array()}};
    for (int i = 0; i < num_properties; ++i) {
      const std::string key = "p" + std::to_string(i);
      object["properties"][key] = {{"$ref", std::string("#/$defs/") + name}};
      object["required"].push_back(key);
    }
    both["$defs"][name] = object;
  }
  return both;
}

/// The refusal of a schema that is read within some seconds of the thread's time, or took minutes.
std::string soon_refused(const ordered_json& schema) {
  const auto began = CallBudget::thread_time();
  const std::string refusal = fixtures::error_text([&] { supported_schema(schema); });
  EXPECT_LT(CallBudget::thread_time() - began, std::chrono::seconds(2));
  return refusal;
}

TEST(JsonSchema, BranchesAreComparedInTimeByTheirNumberAndNotByTheWaysToThem) {
  const auto are_not_apart = [](const ordered_json& schema) {
    return soon_refused(schema).find("of which one value may be") != std::string::npos;
  };
  EXPECT_TRUE(are_not_apart(schema_of_itself(40)));
  ordered_json names = ordered_json::array(), one{{"type", "object"}};
  for (int i = 0; i < 60000; ++i) names.push_back("name");
  one["properties"]["name"] = {{"type", "string"}};
  one["required"] = names;
  EXPECT_TRUE(are_not_apart({{"oneOf", {one, one}}}));
  ordered_json even{{"enum", ordered_json::array()}}, odd = even;
  for (int i = 0; i < 80000; ++i) (i % 2 == 0 ? even : odd)["enum"].push_back(i);
  EXPECT_EQ(soon_refused({{"oneOf", {even, odd}}}), "(no error)");
  odd["enum"].push_back(4.0);
  EXPECT_TRUE(are_not_apart({{"oneOf", {even, odd}}}));
}

TEST(JsonSchema, AReferenceIsFollowedOnceForAllPairsOfBranches) {
  ordered_json last{{"type", "object"}};
  std::string place = "#/$defs/far";
  for (int i = 0; i < 256; ++i) last["properties"]["c" + std::to_string(i)] = {{"const", i}};
  for (int depth = 0; depth < 30; ++depth) {
    ordered_json around{{"type", "object"}};
    for (int i = 0; i < 500; ++i) around["properties"]["p" + std::to_string(i)] = true;
    around["properties"]["next"] = last;
    last = around;
    place += "/properties/next";
  }
  ordered_json schema{{"oneOf", ordered_json::array()}, {"$defs", {{"far", last}}}};
  for (int i = 0; i < 256; ++i)
    schema["oneOf"].push_back({{"$ref", place + "/properties/c" + std::to_string(i)}});
  EXPECT_EQ(soon_refused(schema), "(no error)");
}

TEST(JsonSchema, AClassOfManyCharactersIsReadInTimeByTheirNumber) {
  std::string characters;
  for (int i = 0; i < 24000; ++i) {  // every other one
    const int code = 0x1000 + 2 * i;
    characters += static_cast<char>(0xE0 | code >> 12);
    characters += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    characters += static_cast<char>(0x80 | (code & 0x3F));
  }
  EXPECT_EQ(soon_refused({{"type", "string"}, {"pattern", "^[" + characters + "]$"}}),
            "(no error)");
}

TEST(JsonSchema, ReadingEndsWithTheTimeThatItMayTake) {
  const auto refusal = [](const ordered_json& schema, std::chrono::nanoseconds most) {
    const SchemaTime time(most);
    return fixtures::error_text([&] { supported_schema(schema, time); });
  };
  const std::string over =
      "the JSON schema takes too long to read, expected fewer branches, constants, required "
      "properties and counts in patterns; make it smaller";
  for (const char* each : {"{}", R"({"properties": {"a": {"type": "string"}}})"})
    EXPECT_EQ(refusal(ordered_json::parse(each), std::chrono::nanoseconds(0)), over);
  // What is read for seconds without a limit: counts around counts, many names of many properties.
  const std::chrono::milliseconds short_time(2);
  std::string counts(3000, '(');
  for (int i = 0; i < 1500; ++i) counts += "\\S";
  for (int i = 0; i < 3000; ++i) counts += "){1}";
  EXPECT_EQ(refusal({{"type", "string"}, {"pattern", counts}}, short_time), over);
  ordered_json names{{"type", "object"}}, constants{{"enum", ordered_json::array()}};
  for (int i = 0; i < 20000; ++i) {
    names["required"].push_back("p500");
    constants["enum"].push_back(i);
  }
  for (int i = 0; i <= 500; ++i)
    names["properties"]["p" + std::to_string(i)] = {{"type", "string"}};
  EXPECT_EQ(refusal(names, short_time), over);
  EXPECT_EQ(refusal({{"oneOf", {constants, {{"const", -1}}}}}, short_time), over);
}

TEST(JsonSchema, KeywordsThatTheLibraryWouldLeaveOutAreRefused) {
  for (const char* each :
       {"5",
        "false",
        "[]",
        R"({"allOf": [{"type": "string"}, {"maxLength": 3}]})",
        R"({"allOf": []})",
        R"({"anyOf": []})",
        R"({"enum": []})",
        R"({"enum": 5})",
        R"({"type": "array", "contains": {"const": 1}})",
        R"({"type": "array", "minContains": 1})",
        R"({"type": "array", "uniqueItems": true})",
        R"({"type": "array", "items": {}, "additionalItems": false})",
        R"({"type": "array", "items": [{}]})",
        R"({"not": {"type": "string"}})",
        R"({"type": "object", "not": {}})",
        R"({"if": {}, "then": {"type": "string"}})",
        R"({"type": "object", "const": {"a": 1}, "required": ["b"]})",
        R"({"enum": [1, "a"], "type": "string"})",
        R"({"enum": ["abc"], "maxLength": 2})",
        R"({"const": 1.5, "type": "integer"})",
        R"({"$ref": "#/$defs/a", "maxLength": 2, "$defs": {"a": {"type": "string"}}})",
        R"({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
        R"({"$ref": "https://example.com/schema.json"})",
        R"({"$ref": "#anchor"})",
        R"({"$ref": "#/$defs/none"})",
        R"({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {}}})",
        R"({"$ref": "#/x/y", "x": {"y": {"not": {}}}})",
        R"({"$ref": "#/$defs//a"})",
        R"({"$ref": "#/"})",
        R"({"$dynamicRef": "#a"})",
        R"({"minLength": 2})",
        R"({"required": ["a"]})",
        R"({"type": "object", "required": ["a"]})",
        R"({"type": "object", "properties": {"a": {}}, "required": [5]})",
        R"({"type": "object", "properties": {"a": {}}, "required": "a"})",
        R"({"type": "object", "properties": {"a": 5}})",
        R"({"type": "object", "properties": []})",
        R"({"type": "object", "dependentRequired": {"a": ["b"]}})",
        R"({"type": "object", "minProperties": 2})",
        R"({"type": "object", "properties": {"a": {}}, "patternProperties": {"^a": {}}})",
        R"({"type": "object", "patternProperties": {"^a": {}, "^b": {}}})",
        R"({"type": "object", "patternProperties": {"^a": {}}, "additionalProperties": true})",
        R"j({"type": "object", "patternProperties": {"(?=a)": {}}})j",
        R"({"type": "object", "propertyNames": {"enum": [1]}})",
        R"({"type": "object", "propertyNames": {"anyOf": [{"type": "integer"}]}})",
        R"({"type": "object", "propertyNames": {"minLength": 1}, "additionalProperties": {}})",
        R"({"type": "string", "minLength": -1})",
        R"({"type": "string", "maxLength": 4294967297})",
        R"({"type": "string", "minLength": 1.5})",
        R"({"type": "string", "pattern": 5})",
        R"({"type": "string", "pattern": "^a$", "maxLength": 3})",
        R"({"type": "string", "pattern": "(?!a)b"})",
        R"({"type": "string", "pattern": "\"+"})",
        R"({"type": "string", "format": "date", "pattern": "^1"})",
        R"({"type": "string", "format": "date", "minLength": 3})",
        R"({"type": "string", "format": "iri"})",
        R"({"type": "integer", "minimum": 1e300})",
        R"({"type": "integer", "minimum": 0.5})",
        R"({"type": "integer", "minimum": "0"})",
        R"({"type": "integer", "exclusiveMinimum": true})",
        R"({"type": "integer", "multipleOf": 1.5})",
        R"({"type": "integer", "multipleOf": 0})",
        R"({"type": "integer", "multipleOf": 5000})",
        R"({"type": "integer", "multipleOf": 3, "minimum": 0})",
        R"({"type": "number", "multipleOf": 0.5})",
        R"({"type": "nothing"})",
        R"({"type": []})",
        R"({"type": 5})",
        R"({"type": ["string", 5]})",
        R"({"$defs": {"a": 5}})",
        R"({"type": "object", "properties": {"a": {"type": "array", "items": {"not": {}}}}})"})
    EXPECT_NE(schema_refusal(each), "(no error)") << each;
}

TEST(JsonSchema, NumbersThatTheLibraryWouldRoundAreRefused) {
  for (const char* each :
       {R"({"type": "number", "minimum": 1e-7, "maximum": 2e-7})",
        R"({"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.100001})",
        R"({"type": "number", "minimum": 3.1415926535})",
        R"({"type": "number", "minimum": 9007199254740993})",
        R"({"type": "number", "minimum": 2, "maximum": 1})",
        R"({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2})",
        R"({"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6})",
        R"({"const": 12345678901234567890})", R"({"enum": [1, {"a": [18446744073709551615]}]})",
        R"({"const": 123456789012345678901234567890})"})
    EXPECT_NE(schema_refusal(each), "(no error)") << each;
}

TEST(JsonSchema, WhatContradictsItselfIsRefusedWithItsPlace) {
  for (const char* each :
       {R"({"type": "string", "minLength": 3, "maxLength": 2})",
        R"({"type": "array", "items": {}, "minItems": 3, "maxItems": 2})",
        R"({"type": "array", "prefixItems": [{}, {}], "maxItems": 1})",
        R"({"type": "object", "properties": {"a": {}}, "required": ["a"], "maxProperties": 0})",
        R"({"type": "object", "minProperties": 1})",
        R"({"anyOf": [{"type": "null"}, {"$ref": "#/anyOf/0"}]})",
        R"({"type": "array", "items": {"$id": "http://y/", "type": "null"}})"})
    EXPECT_NE(schema_refusal(each).find(" at "), std::string::npos) << schema_refusal(each);
}

TEST(JsonSchema, TheRefusalNamesKeywordAndPlace) {
  EXPECT_EQ(schema_refusal(R"({"type": "object", "properties": {"a": {"not": {}}}})"),
            "the JSON schema has not at \"/properties/a\", expected keywords that a grammar can "
            "hold there; leave it out, or say it in another way");
  EXPECT_EQ(schema_refusal(R"({"type": "string", "minLength": -1})"),
            "the JSON schema has -1 at \"/minLength\", expected an integer from 0 to 2147483647; "
            "correct it");
}

TEST(JsonSchema, ManyCountedPropertiesAreRefused) {
  ordered_json schema{{"type", "object"}, {"minProperties", 3}};
  for (int i = 0; i < 40; ++i) schema["properties"]["k" + std::to_string(i)] = true;
  EXPECT_NE(schema_refusal(schema.dump()).find("minProperties beside more than 32"),
            std::string::npos);
}

TEST(JsonSchema, OneOfPassesWhereNoValueIsOfTwoBranches) {
  for (const char* each :
       {R"({"oneOf": [{"type": "string"}, {"type": "integer"}]})",
        R"({"oneOf": [{"const": 1}, {"enum": [2, "a"]}]})",
        R"({"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}],
            "discriminator": {"propertyName": "kind"}, "$defs": {
            "cat": {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]},
            "dog": {"type": "object", "properties": {"kind": {"enum": ["dog"]}}, "required": ["kind"]}}})",
        R"({"oneOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]},
                      {"type": "object", "properties": {"b": {}}, "additionalProperties": false}]})"}) {
    EXPECT_EQ(schema_refusal(each), "(no error)") << each;
    const ordered_json out = supported_schema(ordered_json::parse(each));
    EXPECT_TRUE(out.contains("anyOf") && !out.contains("oneOf")) << out;
  }
  for (const char* each :
       {R"({"oneOf": [{"type": "number"}, {"type": "integer"}]})", R"({"oneOf": [{}, {}]})",
        R"({"oneOf": [{"const": 1}, {"enum": [1.0, 2]}]})", R"({"oneOf": [{"const": 1}, {}]})",
        R"({"oneOf": [{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}]})",
        R"({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}}},
                      {"type": "object", "properties": {"kind": {"const": "b"}}}]})",
        R"({"oneOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]},
                      {"type": "object", "properties": {"b": {}}}]})",
        R"({"oneOf": [{"$ref": "#"}, {"type": "string"}]})"})
    EXPECT_NE(schema_refusal(each).find("of which one value may be"), std::string::npos)
        << schema_refusal(each);
}

TEST(JsonSchema, WhatTheLibraryWouldConfuseIsMarked) {
  const ordered_json out = supported_schema(ordered_json::parse(
      R"({"type": "object", "properties": {
          "a": {"type": "object", "properties": {"title": {"type": "string"}}},
          "b": {"const": {"description": 1}}, "c": {"type": "string", "title": "C"}}})"));
  EXPECT_EQ(out["properties"]["a"]["x-place"], "/properties/a");
  EXPECT_EQ(out["properties"]["b"]["x-place"], "/properties/b");
  EXPECT_FALSE(out["properties"]["c"].contains("x-place"));
}

}  // namespace
}  // namespace medusa
