// Anthropic's /v1/messages: the same texts as chats, in its own form.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "infer/grammar/grammar.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::events_of;
using nlohmann::json;

const json kGoInMessages = json::parse(R"({"name": "go", "input_schema":
    {"type": "object", "properties": {"to": {"enum": ["Rome", "Oslo"]}}, "required": ["to"],
     "additionalProperties": false}})");

class MessagesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tiny_ = new fixtures::TinyServed(2); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  static json body_of(const std::string& text, json more = json::object()) {
    json body{{"messages", {{{"role", "user"}, {"content", text}}}}, {"max_tokens", 30}};
    body.update(more);
    return body;
  }
  fixtures::HttpReply post(const json& body, const std::string& path = "/v1/messages") const {
    return ask(server_.port(), "POST", path, body.dump());
  }
  json message(const json& body) const {
    const auto reply = post(body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }

  static fixtures::TinyServed* tiny_;
  fixtures::RunningServer server_{tiny_->model()};
};

fixtures::TinyServed* MessagesTest::tiny_ = nullptr;

TEST_F(MessagesTest, TheTextIsThatOfAChat) {
  const json answer = message(body_of("Once upon a time"));
  EXPECT_EQ(answer["type"], "message");
  EXPECT_EQ(answer["role"], "assistant");
  EXPECT_EQ(answer["content"],
            json({{{"type", "text"}, {"text", tiny_->alone("Once upon a time", 30, 0, 1)}}}));
  EXPECT_EQ(answer["stop_reason"], "max_tokens");
  EXPECT_TRUE(answer["stop_sequence"].is_null());
  EXPECT_EQ(answer["usage"]["output_tokens"], 30);

  const json system = message(body_of("a time", {{"system", "Once upon"}}));
  const json chat = ask(server_.port(), "POST", "/v1/chat/completions",
                        json{{"messages",
                              {{{"role", "system"}, {"content", "Once upon"}},
                               {{"role", "user"}, {"content", "a time"}}}},
                             {"max_tokens", 30}}
                            .dump())
                        .json();
  EXPECT_EQ(system["content"][0]["text"], chat["choices"][0]["message"]["content"]);
}

TEST_F(MessagesTest, AnAnswerThatFillsTheContextSaysSo) {
  json body = body_of("Once upon a time", {{"ignore_eos", true}});
  body["max_tokens"] = 10'000;
  const json answer = message(body);
  EXPECT_EQ(answer["stop_reason"], "model_context_window_exceeded");
  const int64_t tokens = answer["usage"]["output_tokens"];
  EXPECT_EQ(tokens + answer["usage"]["input_tokens"].get<int64_t>(), tiny_->model().context);
  body["max_tokens"] = tokens;
  EXPECT_EQ(message(body)["stop_reason"], "max_tokens") << "as many as there is room for";
  const std::string metrics = ask(server_.port(), "GET", "/metrics").body;
  EXPECT_NE(metrics.find("request_success_total{finished_reason=\"context\"} 1\n"),
            std::string::npos)
      << metrics;
}

TEST_F(MessagesTest, AMessageOfEmptyPartsIsAnEmptyMessage) {
  const json empty = json::parse(R"({"max_tokens": 1, "messages":
      [{"role": "user", "content": [{"type": "text", "text": ""}]}]})");
  EXPECT_EQ(message(empty)["usage"]["output_tokens"], 1);
  const json thinking = json::parse(R"({"max_tokens": 1, "messages": [{"role": "assistant",
      "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""}]}]})");
  const auto refused = post(thinking);
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("messages[0].role"), std::string::npos) << refused.body;
}

TEST_F(MessagesTest, AStopSequenceIsNamed) {
  const std::string whole = tiny_->alone("Once upon a time", 60, 0, 1);
  const std::string stop = whole.substr(whole.size() / 2, 6);
  const json answer = message(
      body_of("Once upon a time", {{"max_tokens", 60}, {"stop_sequences", {"never in it", stop}}}));
  EXPECT_EQ(answer["content"][0]["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(answer["stop_reason"], "stop_sequence");
  EXPECT_EQ(answer["stop_sequence"], stop);
}

/// What a client builds from the events.
json built_message(const std::vector<json>& events) {
  json out;
  std::string arguments;
  bool is_open = false;
  for (const json& event : events) {
    const std::string type = event["type"];
    const size_t index = event.value("index", size_t{0});
    if (type == "message_start") {
      out = event["message"];
    } else if (type == "content_block_start") {
      EXPECT_FALSE(std::exchange(is_open, true));
      EXPECT_EQ(index, out["content"].size());
      out["content"].push_back(event["content_block"]);
      arguments.clear();
    } else if (type == "content_block_delta") {
      json& block = out["content"][index];
      if (event["delta"]["type"] == "text_delta")
        block["text"] =
            block["text"].get<std::string>() + event["delta"]["text"].get<std::string>();
      else
        arguments += event["delta"]["partial_json"].get<std::string>();
    } else if (type == "content_block_stop") {
      EXPECT_TRUE(std::exchange(is_open, false));
      if (out["content"][index]["type"] == "tool_use")
        out["content"][index]["input"] = json::parse(arguments);
    } else if (type == "message_delta") {
      out.update(event["delta"]);
      out["usage"].update(event["usage"]);
      for (const char* own : {"metrics", "medusa"})
        if (event.contains(own)) out[own] = event[own];
    }
  }
  EXPECT_FALSE(is_open);
  return out;
}

TEST_F(MessagesTest, TheEventsOfAStreamBuildTheSame) {
  for (const bool calls : {false, true}) {
    if (calls && !has_grammar_library()) continue;
    json body = body_of("One day, a boy", {{"temperature", 0.8}, {"seed", 3}, {"colour", "red"}});
    if (calls)
      body.update({{"tools", {kGoInMessages}},
                   {"tool_choice", {{"type", "any"}, {"disable_parallel_tool_use", true}}},
                   {"max_tokens", 120}});
    json whole = message(body);
    EXPECT_EQ(whole["content"][0]["type"], calls ? "tool_use" : "text");
    EXPECT_EQ(whole["stop_reason"], calls ? "tool_use" : "max_tokens");
    body["stream"] = true;
    const auto reply = post(body);
    EXPECT_TRUE(reply.body.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
    json built = built_message(events_of(reply.body));
    for (json* each : {&whole, &built}) {
      each->erase("id");
      EXPECT_GT((*each)["metrics"]["speculative_decoding"]["num_spec_steps"], 0);
      EXPECT_EQ((*each)["medusa"]["warnings"], json({"colour: unknown field, ignored"}));
      each->erase("metrics");
      if (calls) (*each)["content"][0].erase("id");
    }
    EXPECT_EQ(built, whole);
  }
}

/// All of its bytes: numbers keep their digits, keys their order.
TEST_F(MessagesTest, AWholeCallIsWhatTheModelWrote) {
  if (!has_grammar_library()) return;
  const json tool = json::parse(R"({"name": "pay", "input_schema": {"type": "object",
      "properties": {"to": {"type": "integer", "minimum": 1000000000000000},
                     "by": {"type": "integer"}}, "required": ["to", "by"],
      "additionalProperties": false}})");
  int calls = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    json body = body_of("go", {{"max_tokens", 240}, {"temperature", 1}, {"seed", seed}});
    body.update({{"tools", {tool}}, {"tool_choice", {{"type", "any"}}}});
    const std::string whole = post(body).body;
    body["stream"] = true;
    std::string written;
    for (const json& event : events_of(post(body).body))
      if (event["type"] == "content_block_delta" && event["delta"].contains("partial_json") &&
          event["index"] == 0)
        written += event["delta"]["partial_json"].get<std::string>();
    if (written.empty()) continue;  // the call was cut off
    ++calls;
    EXPECT_NE(whole.find("{\"input\":" + written + ","), std::string::npos) << whole << written;
  }
  EXPECT_GT(calls, 2);
}

TEST_F(MessagesTest, ToolsAndResultsStandInThePromptAndAreCounted) {
  const json messages = json::parse(R"([
      {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""},
       {"type": "tool_use", "id": "t1", "name": "go", "input": {"to": "Rome", "by": "car"}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Done."},
       {"type": "text", "text": "And now?"}]}])");
  const json body{{"messages", messages}, {"tools", {kGoInMessages}}};
  const auto counted = post(body, "/v1/messages/count_tokens");
  ASSERT_EQ(counted.status, 200) << counted.body;
  const std::string text =
      "go Where?\n\n<tool_call>{\"name\": \"go\", \"arguments\": {\"to\": \"Rome\", \"by\": "
      "\"car\"}}</tool_call>"
      "\n\nDone.\n\nAnd now?";
  EXPECT_EQ(counted.json()["input_tokens"],
            tiny_->loaded().tokenizer->encode(text, true).size() + 1);
  json asked = body;
  asked["max_tokens"] = 1;
  EXPECT_EQ(message(asked)["usage"]["input_tokens"], counted.json()["input_tokens"]);
}

TEST_F(MessagesTest, WhatIsNotFollowedIsIgnoredWithAWarning) {
  const json messages = json::parse(R"([
      {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"a": 1}}]},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "go", "input": {}}]},
      {"role": "user", "name": "x", "content": [{"type": "tool_result", "tool_use_id": "t",
       "content": "Done.", "is_error": true}]}])");
  const json body{{"messages", messages},
                  {"max_tokens", 1},
                  {"inference_geo", "eu"},
                  {"output_config", {{"effort", "high"}}},
                  {"speed", "standard"},
                  {"model", "any"},
                  {"thinking", {{"type", "adaptive"}}}};
  const json expected{"thinking: no thinking is asked of the model, ignored",
                      "output_config.effort: unknown field, ignored",
                      "messages[2].content[0].is_error: unknown field, ignored",
                      "messages[2].name: unknown field, ignored",
                      "inference_geo: unknown field, ignored"};
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    const auto reply = post(body, path);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json()["medusa"]["warnings"], expected) << path;
    json without = body;
    without["thinking"] = {{"type", "disabled"}};
    EXPECT_EQ(post(without, path).json()["medusa"]["warnings"].size(), expected.size() - 1);
  }
}

TEST_F(MessagesTest, AnErrorHasAnthropicsForm) {
  struct Case {
    const char* field;
    json body;
  };
  const auto with = [](json more) { return body_of("a", std::move(more)); };
  const auto block = [](const json& each) {
    return body_of("a", {{"messages", {{{"role", "user"}, {"content", {each}}}}}});
  };
  for (const Case& each : std::initializer_list<Case>{
           {"max_tokens", {{"messages", {{{"role", "user"}, {"content", "a"}}}}}},
           {"messages", with({{"messages", json::array()}})},
           {"messages[0].role", with({{"messages", {{{"role", "system"}, {"content", "a"}}}}})},
           {"messages[0].role", with({{"messages", {{{"role", "assistant"}, {"content", "a"}}}}})},
           {"messages[0].content", with({{"messages", {{{"role", "user"}}}}})},
           {"messages[0].content[0].type", block({{"type", "image"}})},
           {"messages[0].content[0].tool_use_id",
            block({{"type", "tool_result"}, {"tool_use_id", "x"}, {"content", "a"}})},
           {"system", with({{"system", 5}})},
           {"tools[0].input_schema", with({{"tools", {{{"name", "go"}}}}})},
           {"tools[0].type", with({{"tools", {{{"type", "bash_20250124"}, {"name", "bash"}}}}})},
           {"tool_choice.type", with({{"tool_choice", {{"type", "any"}}}})},
           {"tool_choice.name",
            with({{"tools", {kGoInMessages}}, {"tool_choice", {{"type", "tool"}, {"name", "x"}}}})},
           {"thinking.type", with({{"thinking", {{"type", "sometimes"}}}})},
           {"output_config.format.type",
            with({{"output_config", {{"format", {{"type", "yaml"}}}}}})},
           {"temperature", with({{"temperature", -1}})},
           {"response_format", with({{"response_format", {{"type", "json_object"}}}})},
       }) {
    const auto reply = post(each.body);
    EXPECT_EQ(reply.status, 400) << each.body;
    const json error = reply.json();
    EXPECT_EQ(error["type"], "error");
    EXPECT_EQ(error["error"]["type"], "invalid_request_error");
    const std::string message = error["error"]["message"];
    EXPECT_TRUE(message.starts_with(each.field)) << message;
  }
  const auto method = ask(server_.port(), "GET", "/v1/messages");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.json()["type"], "error");
}

}  // namespace
}  // namespace medusa
