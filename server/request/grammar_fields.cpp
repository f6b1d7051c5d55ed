#include "server/request/grammar_fields.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "server/api/api_error.h"

namespace medusa {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // of a grammar: some take very long to compile

}  // namespace

WantedGrammar read_schema(RequestFields& holder, OrderedBody& body, const std::string& place) {
  if (!holder.has("schema") ||
      !(holder.at("schema").is_object() || holder.at("schema").is_boolean()))
    holder.refuse("schema", "a JSON schema");
  WantedGrammar out{
      {GrammarKind::JsonSchema,
       json_text(body.json().at(nlohmann::ordered_json::json_pointer(place + "/schema")))},
      holder.name_of("schema")};
  expect_short(out);
  return out;
}

std::optional<WantedGrammar> read_format(RequestFields& format, const std::string& field,
                                         RequestFields& holder, OrderedBody& body,
                                         const std::string& place) {
  const std::string type = format.text("type").value_or("");
  std::optional<WantedGrammar> out;
  if (type == "json_object") {
    out = any_json_object(field);
  } else if (type == "json_schema") {
    holder.ignore({"name", "description", "strict"});  // an answer always follows its schema
    out = read_schema(holder, body, place);
  } else if (type != "text") {
    format.refuse("type", "text, json_object or json_schema");
  }
  return out;
}

std::optional<WantedGrammar> read_response_format(RequestFields& fields, OrderedBody& body) {
  auto format = fields.object("response_format");
  if (!format) return std::nullopt;
  const bool has_schema = format->text("type") == "json_schema";
  auto schema = has_schema ? format->object("json_schema") : std::nullopt;
  if (has_schema && !schema) format->refuse("json_schema", "an object with a schema");
  auto out = read_format(*format, "response_format", schema ? *schema : *format, body,
                         "/response_format/json_schema");
  if (schema) schema->warn_of_unknown();
  format->warn_of_unknown();
  return out;
}

WantedGrammar any_json_object(const std::string& field) {
  return {{GrammarKind::JsonSchema, R"({"type": "object"})"}, field};
}

std::optional<WantedGrammar> read_own_grammar(RequestFields& own,
                                              std::optional<WantedGrammar> format) {
  const auto take = [&](const char* name, GrammarKind kind) {
    auto text = own.text(name);
    if (!text) return;
    if (format) own.refuse(name, fmt::format("absent beside {}", format->field));
    format = WantedGrammar{{kind, std::move(*text)}, own.name_of(name)};
    expect_short(*format);
  };
  take("regex", GrammarKind::Regex);
  take("grammar", GrammarKind::Ebnf);
  return format;
}

void expect_short(const WantedGrammar& wanted) {
  const size_t size = wanted.grammar.text.size();
  if (size > kMostBytes)
    throw ApiError(400,
                   fmt::format("{} has {} bytes, expected at most {}; make it shorter",
                               wanted.field, size, kMostBytes),
                   wanted.field);
}

}  // namespace medusa
