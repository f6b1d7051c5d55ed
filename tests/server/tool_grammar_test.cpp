// The texts that the grammar of a request's tools has a place for, byte by byte.
#include <gtest/gtest.h>

#include "infer/grammar/grammar.h"
#include "server/api/api_error.h"
#include "server/tool_calls/tool_set.h"

namespace medusa {
namespace {

using nlohmann::ordered_json;

constexpr TokenId kEnd = 256;

/// A token for each byte, and one that ends a text.
GrammarCompiler& byte_compiler() {
  static const std::unique_ptr<GrammarCompiler> compiler = [] {
    GrammarVocabulary bytes;
    for (int byte = 0; byte < kEnd; ++byte) bytes.bytes.emplace_back(1, static_cast<char>(byte));
    bytes.bytes.emplace_back();
    bytes.ends = {kEnd};
    return make_grammar_compiler(bytes);
  }();
  return *compiler;
}

/// Adds a function to a request's tools.
void add(ToolSet& tools, const char* name, ordered_json parameters, bool is_strict = false) {
  const nlohmann::json described = nlohmann::json::object();
  add_tool(
      tools,
      {.name = name, .description = "", .parameters = std::move(parameters), .strict = is_strict},
      RequestFields(described));
}

/// Functions "go" to Rome or Oslo, and "eat".
ToolSet two_tools(bool go_is_strict, ToolUse use, bool parallel) {
  ToolSet tools;
  add(tools, "go", ordered_json::parse(R"({"type": "object", "properties":
                {"to": {"enum": ["Rome", "Oslo"]}}, "required": ["to"],
                "additionalProperties": false})"),
      go_is_strict);
  add(tools, "eat", ordered_json::parse(R"({"type": "object", "properties":
                {"it": {"type": "boolean"}}, "required": ["it"], "additionalProperties": false})"));
  tools.use = use;
  tools.parallel = parallel;
  return tools;
}

std::string call(const std::string& name, const std::string& arguments) {
  return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
         "}\n</tool_call>";
}
const std::string kGoRome = call("go", R"({"to": "Rome"})");
const std::string kGoParis = call("go", R"({"to": "Paris"})");
const std::string kEatIt = call("eat", R"({"it": true})");
const std::string kEatMore = call("eat", R"({"it": true, "more": [1]})");

class ToolGrammar : public testing::Test {
 protected:
  /// Whether an answer may be this text: "yes", "begins" where more must follow, or "no".
  static std::string allows(const ToolSet& tools, const std::string& text) {
    std::vector<std::string> warnings;
    const auto wanted = grammar_with_tools(tools, std::nullopt, warnings);
    EXPECT_TRUE(warnings.empty());
    if (!wanted) return "yes";
    const auto matcher = byte_compiler().compile(wanted->grammar)->make_matcher();
    for (const char byte : text)
      if (!matcher->accept(static_cast<unsigned char>(byte))) return "no";
    if (matcher->has_ended()) return "yes";
    std::vector<int32_t> mask((kEnd + 32) / 32);
    matcher->fill_mask(mask);
    return (mask[kEnd / 32] >> kEnd % 32 & 1) != 0 ? "yes" : "begins";
  }
};

TEST_F(ToolGrammar, AStrictFunctionsArgumentsFollowItsSchemaAmongFreeText) {
  if (!has_grammar_library()) return;
  const ToolSet tools = two_tools(true, ToolUse::Auto, true);
  EXPECT_EQ(allows(tools, ""), "yes");
  EXPECT_EQ(allows(tools, "I go < there. <tool"), "yes");
  EXPECT_EQ(allows(tools, "I go. " + kGoRome), "yes");
  EXPECT_EQ(allows(tools, "I go. " + kGoRome.substr(0, 60)), "begins");
  EXPECT_EQ(allows(tools, kGoRome + "\n" + kEatIt + " and " + kGoRome), "yes");
  EXPECT_EQ(allows(tools, kGoParis), "no");
  EXPECT_EQ(allows(tools, kGoRome + kGoParis), "no");
  EXPECT_EQ(allows(tools, call("walk", "{}")), "no");
  EXPECT_EQ(allows(tools, kEatMore), "yes") << "eat is not strict";
  EXPECT_EQ(allows(tools, call("eat", "5")), "no") << "arguments are an object";
}

TEST_F(ToolGrammar, ASchemaThatNoGrammarHoldsIsRefusedIfStrictAndLeftOutWithAWarningIfNot) {
  for (const bool strict : {true, false}) {
    ToolSet tools = two_tools(strict, ToolUse::Required, true);
    tools.functions[0].parameters["not"] = ordered_json{{"required", {"from"}}};
    std::vector<std::string> warnings;
    if (strict) {
      EXPECT_THROW(grammar_with_tools(tools, std::nullopt, warnings), ApiError);
      continue;
    }
    const auto wanted = grammar_with_tools(tools, std::nullopt, warnings);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(warnings[0].starts_with(
        "tools: arguments of go may be any object, since the JSON schema has not at its root, "))
        << warnings[0];
    ASSERT_TRUE(wanted);
    if (!has_grammar_library()) continue;
    const auto matcher = byte_compiler().compile(wanted->grammar)->make_matcher();
    for (const char byte : kGoParis)
      ASSERT_TRUE(matcher->accept(static_cast<unsigned char>(byte))) << byte;
  }
}

/// The refusal of a required function with such parameters; empty: none.
std::string refusal_of(const ordered_json& parameters) {
  ToolSet tools;
  add(tools, "go", parameters);
  tools.use = ToolUse::Required;
  std::vector<std::string> warnings;
  try {
    grammar_with_tools(tools, std::nullopt, warnings);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return {};
}

TEST_F(ToolGrammar, SchemasThatTakeLongToReadAreRefused) {
  std::string pattern(9000, '(');  // each count copies what it counts
  for (int i = 0; i < 4500; ++i) pattern += "\\S";
  for (int i = 0; i < 9000; ++i) pattern += "){1}";
  const std::string refusal = refusal_of(
      {{"type", "object"}, {"properties", {{"a", {{"type", "string"}, {"pattern", pattern}}}}}});
  EXPECT_TRUE(refusal.starts_with("tools: arguments of go: the JSON schema takes too long to read"))
      << refusal;
}

TEST_F(ToolGrammar, SchemasAreAsLongAsAGrammarMayBeBeforeTheyAreRead) {
  ordered_json unsupported{{"type", "object"}, {"not", {{"required", {"a"}}}}};
  EXPECT_EQ(refusal_of(unsupported), "") << "any object, with a warning";
  unsupported["description"] = std::string(70'000, 'x');
  EXPECT_TRUE(refusal_of(unsupported).starts_with("tools has 700")) << refusal_of(unsupported);
}

TEST_F(ToolGrammar, WithoutParallelCallsOneIsTheLast) {
  if (!has_grammar_library()) return;
  for (const bool strict : {false, true}) {
    const ToolSet tools = two_tools(strict, ToolUse::Auto, false);
    EXPECT_EQ(allows(tools, "No call."), "yes");
    EXPECT_EQ(allows(tools, "I go. " + kGoRome), "yes");
    EXPECT_EQ(allows(tools, kGoRome + "\n" + kEatIt), "no");
    EXPECT_EQ(allows(tools, kGoRome + kEatIt), "no");
    EXPECT_EQ(allows(tools, kGoParis), strict ? "no" : "yes");
  }
}

TEST_F(ToolGrammar, RequiredCallsAreAllThatComes) {
  if (!has_grammar_library()) return;
  for (const bool parallel : {true, false}) {
    const ToolSet tools = two_tools(false, ToolUse::Required, parallel);
    EXPECT_EQ(allows(tools, ""), "begins");
    EXPECT_EQ(allows(tools, "I"), "no");
    EXPECT_EQ(allows(tools, kGoRome), "yes");
    EXPECT_EQ(allows(tools, kEatMore), "no") << "a required call follows its schema";
    EXPECT_EQ(allows(tools, kGoRome + "\n" + kEatIt + "\n" + kGoRome), parallel ? "yes" : "no");
    EXPECT_EQ(allows(tools, kGoRome + kEatIt), "no");
  }
}

TEST_F(ToolGrammar, AFormatBesideRequiredCallsIsIgnoredWithAWord) {
  const ToolSet tools = two_tools(false, ToolUse::Required, true);
  std::vector<std::string> warnings, none;
  const WantedGrammar schema{{GrammarKind::JsonSchema, R"({"type": "null"})"}, "response_format"};
  const auto with = grammar_with_tools(tools, schema, warnings);
  EXPECT_EQ(with->grammar.text, grammar_with_tools(tools, std::nullopt, none)->grammar.text);
  EXPECT_EQ(warnings, std::vector<std::string>(
                          {"response_format: ignored, since the answer is a call of a tool"}));
  EXPECT_THROW(grammar_with_tools(tools, WantedGrammar{{GrammarKind::Regex, "a"}, "regex"}, none),
               ApiError);
}

TEST_F(ToolGrammar, ANamedFunctionIsTheOnlyOne) {
  if (!has_grammar_library()) return;
  ToolSet tools = two_tools(false, ToolUse::Required, true);
  tools.only = "eat";
  EXPECT_EQ(allows(tools, kEatIt), "yes");
  EXPECT_EQ(allows(tools, kGoRome), "no");
  EXPECT_EQ(allows(tools, kEatIt + "\n" + kEatIt), "no");
}

}  // namespace
}  // namespace medusa
