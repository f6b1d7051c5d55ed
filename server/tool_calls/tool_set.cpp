#include "server/tool_calls/tool_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include "base/error.h"
#include "base/json_text.h"
#include "infer/grammar/json_schema.h"
#include "infer/grammar/schema_branches.h"
#include "server/api/api_error.h"

namespace medusa {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostTools = 128;
constexpr size_t kLongestName = 64;

// One after the other, between JSON's tokens. Calls are for programs: they are written in one line,
// as chat templates write them.
constexpr int kMostSpacesOfText = 20, kMostSpacesOfCalls = 1;

/// What reading all schemas of a request may take: streams of others may wait for it.
constexpr std::chrono::milliseconds kSchemaTime{50};

bool is_function_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) != 0 || c == '_' || c == '-');
         });
}

ordered_json json_format(const ordered_json& schema, int most_spaces) {
  return {{"type", "json_schema"}, {"json_schema", schema}, {"max_whitespace_cnt", most_spaces}};
}

[[noreturn]] void refuse_schema(const ToolFunction& function, std::string_view why) {
  throw ApiError(400, fmt::format("tools: arguments of {}: {}", function.name, why), "tools");
}

/// Whether a schema says that it is of something else than objects, which arguments are.
bool is_of_no_object(const ordered_json& schema) {
  const bool has_others = schema.contains("type") && schema.at("type") != "object" &&
                          schema.at("type") != ordered_json::array({"object"});
  return has_others || schema.contains("enum") || schema.contains("const");
}

/// A schema of objects alone. One that says nothing of types and of other schemas means them.
ordered_json schema_of_objects(ordered_json schema, const SchemaTime& time) {
  for (const char* word : {"$ref", "anyOf", "oneOf", "allOf"}) {
    if (!schema.contains(word)) continue;
    schema.erase("type");  // what it leads to says it
    if ((types_of(schema, schema, time) & ~kObjectType) == 0) return schema;
    throw UnsupportedSchema(fmt::format(
        "the JSON schema has {} at its root that may lead to values that are no objects, expected "
        "objects alone; say type: object in each schema that it leads to",
        word));
  }
  schema["type"] = "object";
  return schema;
}

ordered_json arguments_schema(const ToolFunction& function, bool with_schema,
                              const SchemaTime& time, std::vector<std::string>& warnings) {
  ordered_json any{{"type", "object"}};
  if (!with_schema || function.parameters.is_null()) return any;
  try {
    return supported_schema(schema_of_objects(function.parameters, time), time);
  } catch (const UnsupportedSchema& error) {
    if (function.strict) refuse_schema(function, error.what());
    warnings.push_back(fmt::format("tools: arguments of {} may be any object, since {}",
                                   function.name, error.what()));
  } catch (const UserError& error) {
    refuse_schema(function, error.what());
  }
  return any;
}

/// A call, from its first mark to its last.
ordered_json call_format(const ToolFunction& function, ordered_json arguments) {
  return {{"type", "tag"},
          {"begin", "<tool_call>\n{\"name\": \"" + function.name + "\", \"arguments\": "},
          {"content", json_format(std::move(arguments), kMostSpacesOfCalls)},
          {"end", "}\n</tool_call>"}};
}

/// The schema of a text that makes no calls.
ordered_json text_schema(const WantedGrammar& format, const SchemaTime& time) {
  try {
    return supported_schema(ordered_json::parse(format.grammar.text), time);
  } catch (const UserError& error) {
    throw ApiError(400, error.what(), format.field);
  }
}

/// Calls and nothing else.
ordered_json only_calls(ordered_json tags, bool stop_after_first) {
  return {{"type", "tags_with_separator"},
          {"tags", std::move(tags)},
          {"separator", "\n"},
          {"at_least_one", true},
          {"stop_after_first", stop_after_first}};
}

}  // namespace

std::string ToolSet::declaration() const { return may_call() ? json_text(declared) : ""; }

void add_tool(ToolSet& tools, ToolFunction function, const RequestFields& fields) {
  if (!is_function_name(function.name))
    fields.refuse("name", fmt::format("1 to {} letters, digits, '_' and '-'", kLongestName));
  for (const ToolFunction& other : tools.functions)
    if (other.name == function.name) fields.refuse("name", "a name that no other tool has");
  if (tools.functions.size() == kMostTools)
    fields.refuse("name", fmt::format("at most {} tools", kMostTools));
  if (is_of_no_object(function.parameters))
    fields.refuse(fields.contains("input_schema") ? "input_schema" : "parameters",
                  "the JSON schema of an object, with type: object");
  ordered_json described{{"name", function.name}};
  if (!function.description.empty()) described["description"] = function.description;
  if (!function.parameters.is_null()) described["parameters"] = function.parameters;
  tools.declared.push_back({{"type", "function"}, {"function", std::move(described)}});
  tools.functions.push_back(std::move(function));
}

std::optional<WantedGrammar> grammar_with_tools(const ToolSet& tools,
                                                std::optional<WantedGrammar> format,
                                                std::vector<std::string>& warnings) {
  if (!tools.may_call()) return format;
  const bool required = tools.use == ToolUse::Required;
  if (format && format->grammar.kind != GrammarKind::JsonSchema)
    throw ApiError(
        400,
        fmt::format("{} is given beside tools, expected one of both; leave one out", format->field),
        format->field);
  if (format && required) {  // as clients send it that have both
    warnings.push_back(
        fmt::format("{}: ignored, since the answer is a call of a tool", format->field));
    format.reset();
  }
  const bool any_strict = std::any_of(tools.functions.begin(), tools.functions.end(),
                                      [](const ToolFunction& each) { return each.strict; });
  if (!required && !format && tools.parallel && !any_strict) return std::nullopt;

  std::string schemas;  // before they are read
  for (const ToolFunction& each : tools.functions)
    if ((tools.only.empty() || tools.only == each.name) && (required || each.strict))
      schemas += json_text(each.parameters);
  expect_short({{GrammarKind::JsonSchema, std::move(schemas)}, "tools"});
  const SchemaTime time(kSchemaTime);
  ordered_json tags = ordered_json::array();
  for (const ToolFunction& each : tools.functions)
    if (tools.only.empty() || tools.only == each.name)
      tags.push_back(
          call_format(each, arguments_schema(each, required || each.strict, time, warnings)));
  const bool stop_after_first = !tools.parallel || !tools.only.empty();
  ordered_json out;
  if (required)
    out = only_calls(std::move(tags), stop_after_first);
  else if (format)
    out = {{"type", "or"},
           {"elements",
            {only_calls(std::move(tags), stop_after_first),
             json_format(text_schema(*format, time), kMostSpacesOfText)}}};
  else
    out = {{"type", "triggered_tags"},
           {"triggers", {"<tool_call>"}},
           {"tags", std::move(tags)},
           {"stop_after_first", stop_after_first}};
  WantedGrammar wanted{{GrammarKind::StructuralTag,
                        json_text(ordered_json{{"type", "structural_tag"}, {"format", out}})},
                       "tools"};
  expect_short(wanted);
  return wanted;
}

}  // namespace medusa
