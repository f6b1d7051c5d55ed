// Tools: calls in answers, their results in prompts, and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "infer/grammar/grammar.h"
#include "server/request/chat_messages.h"
#include "server/tool_calls/tool_fields.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::events_of;
using nlohmann::json;

const json kGo = json::parse(R"({"type": "function", "function": {"name": "go", "parameters":
    {"type": "object", "properties": {"to": {"enum": ["Rome", "Oslo"]}}, "required": ["to"],
     "additionalProperties": false}}})");
const json kEat = json::parse(R"({"type": "function", "function": {"name": "eat", "parameters":
    {"type": "object", "properties": {"it": {"type": "boolean"}}, "required": ["it"],
     "additionalProperties": false}}})");

class ToolsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tiny_ = new fixtures::TinyServed(2); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  static json chat(json more = json::object()) {
    json body{{"messages", {{{"role", "user"}, {"content", "Lily went to"}}}},
              {"tools", {kGo, kEat}},
              {"max_tokens", 120}};
    body.update(more);
    return body;
  }
  fixtures::HttpReply post(const json& body) const {
    return ask(server_.port(), "POST", "/v1/chat/completions", body.dump());
  }
  json choice(const json& body) const {
    const auto reply = post(body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["choices"][0];
  }

  /// A bias against all tokens with this character, which what must come does not feel.
  static json without(char character) {
    json bias = json::object();
    const Tokenizer& tokenizer = *tiny_->loaded().tokenizer;
    for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
      if (tokenizer.bytes(id).find(character) != std::string::npos) bias[std::to_string(id)] = -100;
    return bias;
  }

  static fixtures::TinyServed* tiny_;
  fixtures::RunningServer server_{tiny_->model()};
};

fixtures::TinyServed* ToolsTest::tiny_ = nullptr;

TEST_F(ToolsTest, ARequiredCallIsOneOfTheToolsWithItsArguments) {
  if (!has_grammar_library()) return;
  for (const int seed : {1, 2, 3}) {
    const json answer = choice(chat({{"tool_choice", "required"},
                                     {"parallel_tool_calls", false},
                                     {"temperature", 1.2},
                                     {"seed", seed}}));
    EXPECT_EQ(answer["finish_reason"], "tool_calls");
    EXPECT_TRUE(answer["message"]["content"].is_null());
    ASSERT_EQ(answer["message"]["tool_calls"].size(), 1U);
    const json& call = answer["message"]["tool_calls"][0];
    EXPECT_EQ(call["type"], "function");
    EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_"));
    const json arguments = json::parse(call["function"]["arguments"].get<std::string>());
    if (call["function"]["name"] == "go")
      EXPECT_TRUE(arguments["to"] == "Rome" || arguments["to"] == "Oslo");
    else
      EXPECT_TRUE(arguments["it"].is_boolean());
  }
}

TEST_F(ToolsTest, OthersAreAnsweredWhileSchemasAreReadThatTakeLong) {
  std::string pattern(9000, '(');  // each count copies what it counts, until the time is over
  for (int i = 0; i < 4500; ++i) pattern += "\\S";
  for (int i = 0; i < 9000; ++i) pattern += "){1}";
  json tool = kGo;
  tool["function"]["parameters"]["properties"]["to"] = {{"type", "string"}, {"pattern", pattern}};
  const json body = chat({{"tools", {tool}}, {"tool_choice", "required"}});

  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  std::atomic<int> left = 40;
  std::vector<std::jthread> clients;
  for (int i = left; i > 0; --i)
    clients.emplace_back([&] {
      EXPECT_EQ(post(body).status, 400);
      --left;
    });
  Clock::duration longest{};
  while (left > 0) {
    const auto asked = Clock::now();
    EXPECT_EQ(ask(server_.port(), "GET", "/health", "").status, 200);
    longest = std::max(longest, Clock::now() - asked);
  }
  EXPECT_LT(2 * longest, Clock::now() - began) << "one of many waits for all others";
}

TEST_F(ToolsTest, ANamedFunctionIsCalledOnce) {
  if (!has_grammar_library()) return;
  for (const char* name : {"go", "eat"}) {
    const json answer =
        choice(chat({{"tool_choice", {{"type", "function"}, {"function", {{"name", name}}}}}}));
    ASSERT_EQ(answer["message"]["tool_calls"].size(), 1U);
    EXPECT_EQ(answer["message"]["tool_calls"][0]["function"]["name"], name);
  }
}

TEST_F(ToolsTest, ARequiredCallHasAnObjectAsItsArguments) {
  if (!has_grammar_library()) return;
  const auto tool = [](const json& parameters) {
    return json{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", parameters}}}};
  };
  for (const char* each : {"{}", R"({"properties": {"a": {"type": "null"}}, "required": ["a"]})"})
    for (const int seed : {4, 5}) {
      const json answer = choice(chat({{"tools", {tool(json::parse(each))}},
                                       {"tool_choice", "required"},
                                       {"temperature", 1},
                                       {"seed", seed}}));
      if (answer["finish_reason"] == "length") {
        const std::string begin = "<tool_call>\n{\"name\": \"f\", \"arguments\": {";
        EXPECT_TRUE(answer["message"]["content"].get<std::string>().starts_with(begin)) << answer;
        continue;
      }
      EXPECT_EQ(answer["finish_reason"], "tool_calls") << answer;
      const json& call = answer["message"]["tool_calls"][0]["function"];
      EXPECT_TRUE(json::parse(call["arguments"].get<std::string>()).is_object()) << call;
    }
  for (const char* each :
       {R"({"type": "string"})", R"({"type": ["object", "null"]})", R"({"enum": [5]})",
        R"({"type": "object", "const": 5})", R"({"type": "array", "maxItems": 0})"}) {
    const auto reply = post(chat({{"tools", {tool(json::parse(each))}}}));
    EXPECT_EQ(reply.status, 400) << each;
    EXPECT_EQ(reply.json()["error"]["param"], "tools[0].function.parameters") << each;
  }
  const json tools{tool({{"anyOf", {{{"type", "object"}}, json::object()}}})};
  EXPECT_EQ(post(chat({{"tools", tools}, {"max_tokens", 2}})).status, 200);
  const auto required = post(chat({{"tools", tools}, {"tool_choice", "required"}}));
  EXPECT_EQ(required.json()["medusa"]["warnings"],
            json({"tools: arguments of f may be any object, since the JSON schema has anyOf at its "
                  "root that may lead to values that are no objects, expected objects alone; say "
                  "type: object in each schema that it leads to"}));
}

TEST_F(ToolsTest, ArgumentsFollowASchemaThatLeadsToOthers) {
  if (!has_grammar_library()) return;
  const json defs = json::parse(
      R"({"n": {"type": "object", "properties": {"l": {"anyOf": [{"$ref": "#/$defs/n"},
          {"type": "null"}]}}, "required": ["l"], "additionalProperties": false},
          "m": {"oneOf": [{"$ref": "#/$defs/n"}]}})");
  for (const char* each :
       {R"({"$ref": "#/$defs/n"})", R"({"$ref": "#/$defs/n", "type": "object"})",
        R"({"allOf": [{"$ref": "#/$defs/n"}]})", R"({"oneOf": [{"$ref": "#/$defs/n"}]})",
        R"({"anyOf": [{"$ref": "#/$defs/m"}, {"$ref": "#/$defs/n"}], "type": ["object"]})"}) {
    json parameters = json::parse(each);
    parameters["$defs"] = defs;
    const json function{{"name", "f"}, {"parameters", parameters}, {"strict", true}};
    const json answer = choice(chat({{"tools", {{{"type", "function"}, {"function", function}}}},
                                     {"tool_choice", "required"},
                                     {"logit_bias", without('{')}}));
    ASSERT_EQ(answer["finish_reason"], "tool_calls") << each << answer;
    const std::string arguments = answer["message"]["tool_calls"][0]["function"]["arguments"];
    EXPECT_EQ(json::parse(arguments), json({{"l", nullptr}})) << each << arguments;
  }
}

TEST_F(ToolsTest, AStreamSaysTheSameCalls) {
  if (!has_grammar_library()) return;
  json body =
      chat({{"tool_choice", "required"}, {"temperature", 1}, {"seed", 4}, {"max_tokens", 200}});
  const json whole = choice(body);
  body["stream"] = true;
  json calls = json::array();
  std::string content, reason;
  for (const json& event : events_of(post(body).body))
    for (const json& each : event["choices"]) {
      if (each["delta"].value("content", json()).is_string()) content += each["delta"]["content"];
      for (json call : each["delta"].value("tool_calls", json::array())) {
        EXPECT_EQ(call["index"], calls.size()) << "calls are numbered in their order";
        call.erase("index");
        call.erase("id");
        calls.push_back(call);
      }
      if (!each["finish_reason"].is_null()) reason = each["finish_reason"];
    }
  json expected = whole["message"]["tool_calls"];
  for (json& call : expected) call.erase("id");
  EXPECT_EQ(calls, expected);
  EXPECT_EQ(content, whole["message"]["content"].is_null() ? "" : whole["message"]["content"]);
  EXPECT_EQ(reason, whole["finish_reason"]);
}

TEST_F(ToolsTest, AFormatHoldsWhereTheModelDoesNotCall) {
  if (!has_grammar_library()) return;
  const json schema = json::parse(
      R"({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
          "additionalProperties": false})");
  const json format{{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  // No '<': the model cannot call.
  const json answer = choice(chat({{"response_format", format}, {"logit_bias", without('<')}}));
  EXPECT_TRUE(json::parse(answer["message"]["content"].get<std::string>())["a"].is_boolean());
  EXPECT_FALSE(answer["message"].contains("tool_calls"));
}

TEST_F(ToolsTest, AStrictFunctionLeavesTextFree) {
  if (!has_grammar_library()) return;
  json strict = kGo;
  strict["function"]["strict"] = true;
  const json free = choice(chat({{"max_tokens", 30}}));
  const json held = choice(chat({{"tools", {strict, kEat}}, {"max_tokens", 30}}));
  EXPECT_EQ(held["message"]["content"], free["message"]["content"]) << "the model calls nothing";
}

TEST_F(ToolsTest, ToolsAndResultsStandInThePrompt) {
  const json messages = json::parse(R"([
      {"role": "user", "content": "Where?"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
       "function": {"name": "go", "arguments": "{\"to\": \"Rome\"}"}}]},
      {"role": "tool", "tool_call_id": "c1", "content": "Done."}])");
  const auto prompt_tokens = [&](const json& body) {
    const auto reply = post(body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["usage"]["prompt_tokens"].get<size_t>();
  };
  const auto encoded = [&](const std::string& text) {
    return tiny_->loaded().tokenizer->encode(text, true).size() + 1;  // and bos
  };
  const std::string text =
      "Where?\n\n<tool_call>{\"name\": \"go\", \"arguments\": {\"to\": "
      "\"Rome\"}}</tool_call>\n\nDone.";
  EXPECT_EQ(prompt_tokens({{"messages", messages}, {"max_tokens", 1}}), encoded(text));
  const json body{{"messages", messages}, {"tools", {kGo, kEat}}, {"max_tokens", 1}};
  EXPECT_EQ(prompt_tokens(body), encoded("go eat " + text));
  json none = body;
  none["tool_choice"] = "none";
  EXPECT_EQ(prompt_tokens(none), encoded(text));
}

TEST(CalledFunctions, AnIdIsThatOfItsLastCall) {
  std::vector<ChatMessage> before{{"assistant", "", {{"c", "weather", "{}"}}}};
  CalledFunctions called;
  EXPECT_EQ(called.of(before, "c"), "weather");
  before.push_back({"tool", "Sunny.", {}, "c", "weather"});
  before.push_back({"assistant", "", {{"c", "pay", "{}"}}});
  EXPECT_EQ(called.of(before, "c"), "pay");
  EXPECT_EQ(called.of(before, "d"), "");
}

TEST_F(ToolsTest, ArgumentsCountAsTextOfThePrompt) {
  const std::string arguments = R"({"to": ")" + std::string(1 << 20, 'x') + R"("})";
  const json call{{"id", "c"}, {"function", {{"name", "go"}, {"arguments", arguments}}}};
  const json messages{{{"role", "user"}, {"content", "a"}},
                      {{"role", "assistant"}, {"tool_calls", {call}}}};
  const auto reply = post(chat({{"messages", messages}}));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("bytes, expected at most 1048576; shorten it"), std::string::npos)
      << reply.body.substr(0, 500);
}

TEST_F(ToolsTest, AWrongToolIsNamed) {
  struct Case {
    const char* field;
    json more;
  };
  const json unnamed = json::parse(R"({"type": "function", "function": {}})");
  json odd_name = kGo, odd_schema = kGo;
  odd_name["function"]["name"] = "go there";
  odd_schema["function"]["parameters"] = 5;
  const auto named = [](const char* name) {
    return json{{"type", "function"}, {"function", {{"name", name}}}};
  };
  const auto result = [](const char* id) {
    return json{{{"role", "user"}, {"content", "a"}},
                {{"role", "tool"}, {"tool_call_id", id}, {"content", "b"}}};
  };
  const auto call = [](const json& function) {
    return json{{{"role", "user"}, {"content", "a"}},
                {{"role", "assistant"}, {"tool_calls", {{{"id", "c"}, {"function", function}}}}}};
  };
  for (const Case& each : std::initializer_list<Case>{
           {"tools", {{"tools", 5}}},
           {"tools", {{"tools", {5}}}},
           {"tools[0].type", {{"tools", {{{"type", "search"}}}}}},
           {"tools[0].function", {{"tools", {{{"type", "function"}}}}}},
           {"tools[0].function.name", {{"tools", {unnamed}}}},
           {"tools[0].function.name", {{"tools", {odd_name}}}},
           {"tools[0].function.parameters", {{"tools", {odd_schema}}}},
           {"tools[1].function.name", {{"tools", {kGo, kGo}}}},
           {"tool_choice", {{"tool_choice", "must"}}},
           {"tool_choice", {{"tool_choice", "required"}, {"tools", json::array()}}},
           {"tool_choice.type", {{"tool_choice", {{"type", "allowed_tools"}}}}},
           {"tool_choice.function", {{"tool_choice", {{"type", "function"}}}}},
           {"tool_choice.function.name", {{"tool_choice", named("walk")}}},
           {"parallel_tool_calls", {{"parallel_tool_calls", 1}}},
           {"medusa.regex", {{"medusa", {{"regex", "a+"}}}}},
           {"ignore_eos", {{"tool_choice", "required"}, {"ignore_eos", true}}},
           {"messages[1].tool_call_id", {{"messages", result("c1")}}},
           {"messages[1].tool_calls[0].function.name", {{"messages", call({{"arguments", "{}"}})}}},
           {"messages[1].tool_calls[0].function.arguments",
            {{"messages", call({{"name", "go"}, {"arguments", "{"}})}}},
           {"messages[1].tool_calls[0].function.arguments",
            {{"messages", call({{"name", "go"}, {"arguments", "[1]"}})}}},
       }) {
    const auto reply = post(chat(each.more));
    EXPECT_EQ(reply.status, 400) << each.more;
    EXPECT_EQ(reply.json()["error"]["param"], each.field) << reply.body;
  }
  if (has_grammar_library()) {
    json wrong_schema = kGo;
    wrong_schema["function"]["parameters"] = {{"type", "object"}, {"properties", 5}};
    const auto reply = post(chat({{"tools", {wrong_schema}}, {"tool_choice", "required"}}));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], "tools");
  }
}

TEST_F(ToolsTest, ATemplateWithoutToolsRefusesThemByTheirField) {
  const ChatTemplate plain = ChatTemplate::by_name("plain");
  const ServedModel tiny = tiny_->model();
  const fixtures::RunningServer server({.name = tiny.name,
                                        .tokenizer = tiny.tokenizer,
                                        .chat = plain,
                                        .eos = tiny.eos,
                                        .context = tiny.context,
                                        .num_sequences = tiny.num_sequences,
                                        .cache_tokens = tiny.cache_tokens,
                                        .decoder = tiny.decoder,
                                        .settings = tiny.settings,
                                        .drafters = tiny.drafters,
                                        .unshared_drafters = tiny.unshared_drafters});
  const auto param = [&](const json& body) {
    const auto reply = ask(server.port(), "POST", "/v1/chat/completions", body.dump());
    return reply.status == 400 ? reply.json()["error"]["param"] : json(reply.status);
  };
  EXPECT_EQ(param(chat()), "tools");
  EXPECT_EQ(param(chat({{"tool_choice", "none"}, {"max_tokens", 1}})), 200);
  const json calls = json::parse(R"([{"role": "user", "content": "a"}, {"role": "assistant",
      "tool_calls": [{"id": "c", "function": {"name": "go", "arguments": "{}"}}]}])");
  EXPECT_EQ(param({{"messages", calls}}), "messages[1].tool_calls");
}

}  // namespace
}  // namespace medusa
