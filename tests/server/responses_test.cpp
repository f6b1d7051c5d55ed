// OpenAI's /v1/responses: the same texts as chats, in its own form.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "infer/grammar/grammar.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::events_of;
using nlohmann::json;

const json kGoInResponses =
    json::parse(R"({"type": "function", "name": "go", "strict": true, "parameters":
    {"type": "object", "properties": {"to": {"enum": ["Rome", "Oslo"]}}, "required": ["to"],
     "additionalProperties": false}})");

class ResponsesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tiny_ = new fixtures::TinyServed(2); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  fixtures::HttpReply post(const json& body) const {
    return ask(server_.port(), "POST", "/v1/responses", body.dump());
  }
  json respond(const json& body) const {
    const auto reply = post(body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }

  static fixtures::TinyServed* tiny_;
  fixtures::RunningServer server_{tiny_->model()};
};

fixtures::TinyServed* ResponsesTest::tiny_ = nullptr;

TEST_F(ResponsesTest, TheTextIsThatOfAChat) {
  const json answer = respond({{"input", "Once upon a time"}, {"max_output_tokens", 30}});
  const std::string text = tiny_->alone("Once upon a time", 30, 0, 1);
  EXPECT_EQ(answer["object"], "response");
  EXPECT_EQ(answer["status"], "incomplete");
  EXPECT_EQ(answer["incomplete_details"]["reason"], "max_output_tokens");
  ASSERT_EQ(answer["output"].size(), 1U);
  EXPECT_EQ(answer["output"][0]["type"], "message");
  EXPECT_EQ(answer["output"][0]["content"][0]["text"], text);
  EXPECT_EQ(answer["usage"]["output_tokens"], 30);

  const json same = respond({{"instructions", "Once upon"},
                             {"input", {{{"role", "user"}, {"content", "a time"}}}},
                             {"max_output_tokens", 30}});
  const json chat = ask(server_.port(), "POST", "/v1/chat/completions",
                        json{{"messages",
                              {{{"role", "system"}, {"content", "Once upon"}},
                               {{"role", "user"}, {"content", "a time"}}}},
                             {"max_tokens", 30}}
                            .dump())
                        .json();
  EXPECT_EQ(same["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["content"]);
}

/// What a client builds from the events.
json built_response(const std::vector<json>& events) {
  json output = json::array();
  int64_t number = 0;
  for (const json& event : events) {
    EXPECT_EQ(event["sequence_number"], number++);
    const std::string type = event["type"];
    const size_t index = event.value("output_index", size_t{0});
    if (type == "response.output_item.added") {
      EXPECT_EQ(index, output.size());
      output.push_back(event["item"]);
    } else if (type == "response.content_part.added") {
      output[index]["content"].push_back(event["part"]);
    } else if (type == "response.output_text.delta") {
      json& text = output[index]["content"][event["content_index"].get<size_t>()]["text"];
      text = text.get<std::string>() + event["delta"].get<std::string>();
    } else if (type == "response.function_call_arguments.delta") {
      json& arguments = output[index]["arguments"];
      arguments = arguments.get<std::string>() + event["delta"].get<std::string>();
    } else if (type == "response.output_item.done") {
      output[index]["status"] = event["item"]["status"];
      EXPECT_EQ(output[index], event["item"]) << "the pieces are the whole";
    }
  }
  return output;
}

TEST_F(ResponsesTest, TheEventsOfAStreamBuildTheSame) {
  json body{{"input", "One day, a boy"}, {"max_output_tokens", 40}, {"stream", true}};
  for (const bool calls : {false, true}) {
    if (calls && !has_grammar_library()) continue;
    if (calls) {
      body["tools"] = {kGoInResponses};
      body["tool_choice"] = {{"type", "function"}, {"name", "go"}};
      body["max_output_tokens"] = 120;
    }
    const auto reply = post(body);
    EXPECT_NE(reply.body.find("event: response.output_item.added\ndata: "), std::string::npos);
    const auto events = events_of(reply.body);
    ASSERT_GT(events.size(), 5U);
    EXPECT_EQ(events[0]["type"], "response.created");
    EXPECT_EQ(events[1]["type"], "response.in_progress");
    const json& last = events.back();
    EXPECT_EQ(last["type"], calls ? "response.completed" : "response.incomplete");
    EXPECT_EQ(built_response(events), last["response"]["output"]);
    EXPECT_EQ(last["response"]["output"][0]["type"], calls ? "function_call" : "message");
    EXPECT_EQ(last["response"]["id"], events[0]["response"]["id"]);
  }
}

TEST_F(ResponsesTest, ACallAndItsResultGoBackIntoThePrompt) {
  if (!has_grammar_library()) return;
  json input = {{{"role", "user"}, {"content", "Lily went to"}}};
  const json body{{"input", input},
                  {"tools", {kGoInResponses}},
                  {"tool_choice", "required"},
                  {"parallel_tool_calls", false}};
  const json first = respond(body);
  ASSERT_EQ(first["output"].size(), 1U);
  const json& call = first["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "go");
  EXPECT_EQ(first["status"], "completed");
  input.push_back(call);
  input.push_back(
      {{"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "Done."}});
  const json second = respond({{"input", input}, {"max_output_tokens", 1}});
  EXPECT_GT(second["usage"]["input_tokens"], first["usage"]["input_tokens"]);
}

TEST_F(ResponsesTest, AFormatIsKept) {
  if (!has_grammar_library()) return;
  const std::string body =
      R"({"input": "Once", "text": {"format": {"type": "json_schema", "name": "x",
      "schema": {"type": "object", "properties": {"b": {"type": "boolean"}, "a": {"type": "boolean"}},
                 "required": ["b", "a"], "additionalProperties": false}}}})";
  const auto reply = ask(server_.port(), "POST", "/v1/responses", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json answer = reply.json();
  const std::string text = answer["output"][0]["content"][0]["text"];
  EXPECT_TRUE(json::parse(text)["a"].is_boolean());
  EXPECT_LT(text.find("\"b\""), text.find("\"a\"")) << "in the schema's order";
}

TEST_F(ResponsesTest, AnAnswerThatComesTooLateHasFailed) {
  const fixtures::RunningServer late(tiny_->model(), {.deadline = 0.05});
  const json body{
      {"input", "Once"}, {"max_output_tokens", 250}, {"ignore_eos", true}, {"stream", true}};
  const auto events = events_of(ask(late.port(), "POST", "/v1/responses", body.dump()).body);
  ASSERT_FALSE(events.empty());
  const json& last = events.back();
  EXPECT_EQ(last["type"], "response.failed");
  EXPECT_EQ(last["response"]["status"], "failed");
  EXPECT_TRUE(last["response"]["incomplete_details"].is_null()) << last;
  for (const json& item : last["response"]["output"]) EXPECT_EQ(item["status"], "incomplete");
}

TEST_F(ResponsesTest, AWrongFieldIsNamedAsItIsCalledHere) {
  struct Case {
    const char* field;
    json more;
  };
  const auto input = [](const json& item) { return json{{"input", {item}}}; };
  for (const Case& each : std::initializer_list<Case>{
           {"input", {{"input", json::array()}}},
           {"input", {{"input", 5}}},
           {"input", input({{"type", "reasoning"}, {"summary", json::array()}})},
           {"input[0].role", input({{"role", "tool"}, {"content", "a"}})},
           {"input[0].content", input({{"role", "user"}})},
           {"input[0].content",
            input({{"role", "user"}, {"content", {{{"type", "input_image"}}}}})},
           {"input[0].type", input({{"type", "web_search_call"}})},
           {"input[0].call_id",
            input({{"type", "function_call_output"}, {"call_id", "c"}, {"output", "a"}})},
           {"input[0].arguments", input({{"type", "function_call"},
                                         {"call_id", "c"},
                                         {"name", "go"},
                                         {"arguments", "no"}})},
           {"max_output_tokens", {{"max_output_tokens", 0}}},
           {"previous_response_id", {{"previous_response_id", "resp_1"}}},
           {"background", {{"background", true}}},
           {"response_format", {{"response_format", {{"type", "json_object"}}}}},
           {"no_repeat_ngram_size", {{"no_repeat_ngram_size", 3}}},
           {"xtc_probability", {{"xtc_probability", 0.5}}},
           {"top_logprobs", {{"top_logprobs", 3}}},
           {"tools[0].type", {{"tools", {{{"type", "web_search"}}}}}},
           {"tools[0].name", {{"tools", {{{"type", "function"}}}}}},
           {"tool_choice", {{"tool_choice", "required"}}},
           {"tool_choice.name",
            {{"tools", {kGoInResponses}}, {"tool_choice", {{"type", "function"}, {"name", "x"}}}}},
           {"text.format.type", {{"text", {{"format", {{"type", "yaml"}}}}}}},
           {"text.format.schema", {{"text", {{"format", {{"type", "json_schema"}}}}}}},
           {"temperature", {{"temperature", "warm"}}},
       }) {
    json body{{"input", "a"}};
    body.update(each.more);
    const auto reply = post(body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(reply.json()["error"]["param"], each.field) << reply.body;
  }
}

TEST_F(ResponsesTest, WhatIsNotFollowedIsIgnoredWithAWarning) {
  const auto warnings = [&](json body) {
    body["max_output_tokens"] = 2;
    if (!body.contains("input")) body["input"] = "a";
    const json answer = respond(body);
    std::string out;
    for (const json& each : answer.value("/medusa/warnings"_json_pointer, json::array())) {
      const std::string text = each;
      EXPECT_TRUE(text.ends_with(": unknown field, ignored")) << text;
      out += text.substr(0, text.find(':')) + " ";
    }
    return out;
  };
  EXPECT_EQ(warnings({{"include", {"reasoning.encrypted_content"}},
                      {"max_tool_calls", 1},
                      {"reasoning", {{"effort", "high"}}},
                      {"service_tier", "priority"},
                      {"store", true},
                      {"stream_options", {{"include_obfuscation", true}}},
                      {"text", {{"verbosity", "low"}}}}),
            "text.verbosity include max_tool_calls reasoning service_tier store stream_options ");
  EXPECT_EQ(warnings({{"include", json::array()},
                      {"max_tool_calls", nullptr},
                      {"reasoning", {{"effort", "none"}}},
                      {"service_tier", "auto"},
                      {"store", false},
                      {"stream_options", {{"include_obfuscation", false}}},
                      {"user", "u"},
                      {"metadata", {{"a", "b"}}}}),
            "");
  json tool = kGoInResponses;
  tool["defer_loading"] = true;
  tool.erase("strict");
  EXPECT_EQ(warnings({{"tools", {tool}},
                      {"tool_choice", "none"},
                      {"input", {{{"role", "user"}, {"content", "a"}, {"name", "x"}}}}}),
            "tools[0].defer_loading input[0].name ");
}

TEST_F(ResponsesTest, AnUnknownFieldIsIgnoredWithAWarning) {
  const json answer = respond({{"input", "a"}, {"max_output_tokens", 2}, {"colour", "red"}});
  EXPECT_EQ(answer["medusa"]["warnings"], json({"colour: unknown field, ignored"}));
}

}  // namespace
}  // namespace medusa
