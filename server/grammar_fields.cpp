#include "server/grammar_fields.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "server/api_error.h"

namespace medusa {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // of a grammar: some take very long to compile

/// The schema as the client wrote it, its keys in their order.
std::string schema_text(std::string_view body) {
  const auto ordered = nlohmann::ordered_json::parse(body);
  return json_text(ordered["response_format"]["json_schema"]["schema"]);
}

std::optional<WantedGrammar> read_response_format(RequestFields& fields, std::string_view body) {
  auto format = fields.object("response_format");
  if (!format) return std::nullopt;
  const std::string type = format->text("type").value_or("");
  if (type == "text") return std::nullopt;
  if (type == "json_object")
    return WantedGrammar{{GrammarKind::JsonSchema, R"({"type": "object"})"}, "response_format"};
  if (type != "json_schema") format->refuse("type", "text, json_object or json_schema");
  auto schema = format->object("json_schema");
  if (!schema) format->refuse("json_schema", "an object with a schema");
  if (!schema->has("schema") ||
      !(schema->at("schema").is_object() || schema->at("schema").is_boolean()))
    schema->refuse("schema", "a JSON schema");
  return WantedGrammar{{GrammarKind::JsonSchema, schema_text(body)},
                       "response_format.json_schema.schema"};
}

}  // namespace

std::optional<WantedGrammar> read_grammar_fields(RequestFields& fields, RequestFields* own,
                                                 std::string_view body) {
  std::optional<WantedGrammar> out = read_response_format(fields, body);
  const auto take = [&](const char* name, GrammarKind kind) {
    auto text = own->text(name);
    if (!text) return;
    if (out) own->refuse(name, fmt::format("absent beside {}", out->field));
    out = WantedGrammar{{kind, std::move(*text)}, fmt::format("medusa.{}", name)};
  };
  if (own != nullptr) {
    take("regex", GrammarKind::Regex);
    take("grammar", GrammarKind::Ebnf);
  }
  if (out) expect_short(*out);
  return out;
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
