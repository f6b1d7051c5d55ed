// Requests that the server refuses, or takes with a warning.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "server/api/api_error.h"
#include "server/api/completion_request.h"
#include "tests/server/server_fixture.h"

namespace medusa {
namespace {

using fixtures::ask;
using nlohmann::json;

class RefusalsTest : public fixtures::ServerFixture {};

TEST_F(RefusalsTest, AWrongFieldIsNamed) {
  struct Case {
    const char* body;
    const char* field;
  };
  for (const Case& each : std::initializer_list<Case>{
           {R"({"prompt": "a", "temperature": "x"})", "temperature"},
           {R"({"prompt": "a", "temperature": -1})", "temperature"},
           {R"({"prompt": "a", "temperature": 1e999})", nullptr},
           {R"({"prompt": "a", "top_p": 0})", "top_p"},
           {R"({"prompt": "a", "max_tokens": 0})", "max_tokens"},
           {R"({"prompt": "a", "max_tokens": 1.5})", "max_tokens"},
           {R"({"prompt": "a", "n": 17})", "n"},
           {R"({"prompt": "a", "seed": 18446744073709551615})", "seed"},
           {R"({"prompt": "a", "stop": [""]})", "stop"},
           {R"({"prompt": "a", "stop": 5})", "stop"},
           {R"({"prompt": "a", "stream": "yes"})", "stream"},
           {R"({"prompt": "a", "stream_options": {"include_usage": 1}})",
            "stream_options.include_usage"},
           {R"({"prompt": []})", "prompt"},
           {R"({"prompt": [1, "a"]})", "prompt"},
           {R"({"prompt": [-1]})", "prompt"},
           {R"({"prompt": [100000000]})", "prompt"},
           {R"({"prompt": {"a": 1}})", "prompt"},
           {R"({})", "prompt"},
           {R"({"prompt": "a", "logit_bias": {"5": 101}})", "logit_bias"},
           {R"({"prompt": "a", "logit_bias": {"512": 1}})", "logit_bias"},
           {R"({"prompt": "a", "logit_bias": {"-1": 1}})", "logit_bias"},
           {R"({"prompt": "a", "logit_bias": {"5x": 1}})", "logit_bias"},
           {R"({"prompt": "a", "logit_bias": {"1": 1, "01": 2}})", "logit_bias"},
           {R"({"prompt": "a", "logit_bias": {"5": "1"}})", "logit_bias"},
           {R"({"prompt": "a", "logit_bias": [5]})", "logit_bias"},
           {R"({"prompt": "a", "presence_penalty": 2.5})", "presence_penalty"},
           {R"({"prompt": "a", "frequency_penalty": "a"})", "frequency_penalty"},
           {R"({"prompt": "a", "repetition_penalty": 0})", "repetition_penalty"},
           {R"({"prompt": "a", "min_p": 1.1})", "min_p"},
           {R"({"prompt": "a", "min_tokens": 17})", "min_tokens"},  // of 16
           {R"({"prompt": "a", "min_tokens": -1})", "min_tokens"},
           {R"({"prompt": "a", "allowed_token_ids": []})", "allowed_token_ids"},
           {R"({"prompt": "a", "allowed_token_ids": [1, 600]})", "allowed_token_ids"},
           {R"({"prompt": "a", "stop_token_ids": [-5]})", "stop_token_ids"},
           {R"({"prompt": "a", "best_of": 2})", "best_of"},
           {R"({"prompt": "a", "medusa": {"tree_size": 0}})", "medusa.tree_size"},
           {R"({"prompt": "a", "medusa": {"tree_size": 65}})", "medusa.tree_size"},
           {R"({"prompt": "a", "response_format": {"type": "yaml"}})", "response_format.type"},
           {R"({"prompt": "a", "response_format": {"type": "json_schema"}})",
            "response_format.json_schema"},
           {R"({"prompt": "a", "medusa": {"regex": "("}})", "medusa.regex"},
           {R"({"prompt": "a", "medusa": {"regex": "a", "grammar": "root ::= \"a\""}})",
            "medusa.grammar"},
           {R"({"prompt": "a", "medusa": {"drafter": "nobody"}})", "medusa.drafter"},
           {R"({"prompt": "a", "medusa": {"drafter": "draft_model"}})", "medusa.drafter"},
           {R"({"prompt": "a", "medusa": {"rule": 3}})", "medusa.rule"},
           {R"({"prompt": "a", "medusa": {"rule": "match"}})", "medusa"},  // at temperature 0
           {"[1]", nullptr},
           {"{\"prompt\": \"a\xff\"}", nullptr},
           {R"({"prompt": "\ud800"})", nullptr},
           {"", nullptr},
           {"{", nullptr},
       }) {
    const auto reply = ask(port(), "POST", "/v1/completions", each.body);
    EXPECT_EQ(reply.status, 400) << each.body;
    const json error = reply.json()["error"];
    EXPECT_EQ(error["param"], each.field != nullptr ? json(each.field) : json()) << each.body;
    EXPECT_EQ(error["type"], "invalid_request_error");
  }
  const std::string deep(5000, '[');
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", deep).status, 400);
  for (const char* messages : {"[]", "[1]", R"([{"role": "tool", "content": "a"}])",
                               R"([{"role": "user"}])", R"([{"role": "user", "content": 5}])"})
    EXPECT_EQ(
        ask(port(), "POST", "/v1/chat/completions", fmt::format(R"({{"messages": {}}})", messages))
            .status,
        400)
        << messages;
}

TEST_F(RefusalsTest, ANumberThatNoDoubleHoldsIsNamed) {
  struct Case {
    const char* body;
    const char* begin;
  };
  for (const Case& each : std::initializer_list<Case>{
           {R"({"prompt": "a", "temperature": 1e999})", "temperature is 1e999, expected"},
           {R"({"prompt": [1, -1e400]})", "prompt[1] is -1e400, expected"},
           {R"({"medusa": {"steps": [{}, []], "epsilon": 1e309}})", "medusa.epsilon is 1e309,"},
           {R"({"prompt": "a", "logit_bias": {"5": 1, "6": 1e999}})", "logit_bias.6 is 1e999,"},
           {R"({"stop": [[1, 2], {"a": 1}, 1e999]})", "stop[2] is 1e999,"},
           {"1e999", "the body is 1e999, expected"},
           {R"({"prompt": "1e999")", "the body is not JSON,"},
       }) {
    const auto reply = ask(port(), "POST", "/v1/completions", each.body);
    EXPECT_EQ(reply.status, 400);
    const std::string message = reply.json()["error"]["message"];
    EXPECT_TRUE(message.starts_with(each.begin)) << message;
  }
}

TEST_F(RefusalsTest, AtMostThreeHundredTokensAreBiased) {
  json bias = json::object();
  for (int id = 0; id < 300; ++id) bias[std::to_string(id)] = 0;
  json body{{"prompt", "a"}, {"max_tokens", 1}, {"logit_bias", bias}};
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", body.dump()).status, 200);
  body["logit_bias"]["300"] = 0;
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", body.dump()).status, 400);
}

TEST_F(RefusalsTest, WhatEveryAnswerHasACopyOfIsBounded) {
  const auto field = [&](const json& more) -> json {
    json body{{"prompt", "a"}, {"max_tokens", 1}};
    body.update(more);
    const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
    return reply.status == 200 ? json("none") : reply.json()["error"]["param"];
  };
  EXPECT_EQ(field({{"stop", std::string(4096, 'x')}}), "none");
  EXPECT_EQ(field({{"stop", std::string(4097, 'x')}}), "stop");
  EXPECT_EQ(field({{"stop_token_ids", std::vector<int>(256, 5)}}), "none");
  EXPECT_EQ(field({{"stop_token_ids", std::vector<int>(257, 5)}}), "stop_token_ids");
  const std::vector<std::vector<int>> prompts(64, std::vector<int>(100, 300));
  EXPECT_EQ(field({{"prompt", prompts}, {"echo", true}, {"logprobs", 20}, {"n", 16}}), "logprobs");
  EXPECT_EQ(field({{"prompt", prompts}, {"max_tokens", 100}, {"logprobs", 20}, {"n", 16}}),
            "logprobs");
  const json steps{{"steps", true}}, few{{"steps", true}, {"tree_size", 9}};
  EXPECT_EQ(field({{"prompt", prompts}, {"max_tokens", 16}, {"n", 16}, {"medusa", steps}}),
            "medusa.steps");
  EXPECT_EQ(field({{"prompt", {{300}}}, {"max_tokens", 16}, {"n", 16}, {"medusa", few}}), "none");
  EXPECT_EQ(field({{"prompt", std::string(300'000, 'a')}, {"echo", true}, {"n", 16}}), "echo");
  const json ids{{"tokens", std::vector<int>(600'000, 300)}};
  const auto reply = ask(port(), "POST", "/detokenize", ids.dump());
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["param"], "tokens");
}

TEST_F(RefusalsTest, AnswersOfUnsaidLengthAreAsLongAsTheirLogprobsMayBe) {
  ServedModel vast = tiny_->model();
  vast.context = 1 << 20;
  json body = json::parse(R"({"messages": [{"role": "user", "content": "a"}], "n": 2,
                              "logprobs": true, "top_logprobs": 9})");
  const auto read = [&] { return read_chat_request(body, body.dump(), vast); };
  for (const GenerationRequest& each : read().choices) EXPECT_EQ(each.max_tokens, 50'000);
  body["max_tokens"] = 50'000;
  EXPECT_EQ(read().choices.size(), 2U);
  body["max_tokens"] = 50'001;
  EXPECT_THROW(read(), ApiError);
  body.erase("max_tokens");
  body["medusa"] = {{"steps", true}, {"tree_size", 15}};
  for (const GenerationRequest& each : read().choices) EXPECT_EQ(each.max_tokens, 20'000);
}

/// Others wait meanwhile.
TEST_F(RefusalsTest, BodiesAreReadInTimeByTheirLength) {
  json body{{"prompt", "a"}, {"max_tokens", 1}};
  body["metadata"]["list"] = json(std::vector<json>(400'000, json::object()));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", body.dump()).status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  body["metadata"] = json::object();
  for (int i = 0; i < 512; ++i) body["metadata"][std::to_string(i)] = 0;
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", body.dump()).status, 200);
  body["metadata"]["512"] = 0;
  const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["message"],
            "the body has an object of 513 keys, expected at most 512; leave some out");
}

TEST_F(RefusalsTest, TextsThatAreSurelyTooLongAreNotEncoded) {
  const std::string text((1 << 20) + 1, ' ');
  for (const auto& [path, body] : std::initializer_list<std::pair<const char*, json>>{
           {"/tokenize", {{"prompt", text}}},
           {"/v1/completions", {{"prompt", text}}},
           {"/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", text}}}}}}}) {
    const json error = ask(port(), "POST", path, body.dump()).json()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded") << path;
    EXPECT_NE(error["message"].get<std::string>().find("has 1048577 bytes"), std::string::npos)
        << error;
  }
  const json messages(10'001, json{{"role", "user"}, {"content", "a"}});
  for (const auto& [path, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"/v1/chat/completions", "messages"},
           {"/v1/messages", "messages"},
           {"/v1/responses", "input"}}) {
    const auto reply = ask(port(), "POST", path, json{{"max_tokens", 1}, {name, messages}}.dump());
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.body.find("of 1 to 10000 messages"), std::string::npos) << reply.body;
  }
}

TEST_F(RefusalsTest, TokensBeyondTheContextAreRefusedBeforeTheyAreCopied) {
  json body{{"prompt", std::vector<int>(1 << 20, 1)}, {"n", 16}, {"max_tokens", 1}};
  for (const json& prompt : {body["prompt"], json{body["prompt"], body["prompt"]}}) {
    body["prompt"] = prompt;
    const json error = ask(port(), "POST", "/v1/completions", body.dump()).json()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_NE(error["message"].get<std::string>().find("the prompt has 1048576 tokens"),
              std::string::npos)
        << error;
  }
}

TEST_F(RefusalsTest, WhatAResponseRepeatsIsShort) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, json>>{
           {"metadata", {{"a", std::vector<json>(400'000, json::array())}}},
           {"tools",
            {{{"type", "function"}, {"name", "f"}, {"description", std::string(1 << 20, 'x')}}}}}) {
    const json body{
        {"input", "a"}, {"max_output_tokens", 1}, {"tool_choice", "none"}, {name, value}};
    const auto reply = ask(port(), "POST", "/v1/responses", body.dump());
    EXPECT_EQ(reply.status, 400) << name;
    EXPECT_EQ(reply.json()["error"]["param"], name);
    EXPECT_NE(reply.body.find("at most 1048576 bytes of metadata, text, tool_choice and tools"),
              std::string::npos)
        << reply.body;
  }
}

TEST_F(RefusalsTest, AWordOfOtherServersForAFormatIsRefused) {
  for (const char* name : {"guided_json", "guided_choice", "structured_outputs", "structural_tag",
                           "grammar", "ebnf"}) {
    const auto reply =
        ask(port(), "POST", "/v1/completions", json{{"prompt", "a"}, {name, {{"a", 1}}}}.dump());
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json()["error"]["param"], name);
  }
}

TEST_F(RefusalsTest, WhatWouldMakeAnotherAnswerIsRefusedAndItsDefaultIsNot) {
  const auto asked = [&](const std::string& name, const json& value) {
    return ask(port(), "POST", "/v1/completions",
               json{{"prompt", "a"}, {"max_tokens", 1}, {name, value}}.dump());
  };
  for (const auto& [name, value, harmless] :
       std::initializer_list<std::tuple<const char*, json, json>>{
           {"add_generation_prompt", false, true},
           {"bad_words", {"a"}, json::array()},
           {"chat_template", "{{ x }}", nullptr},
           {"chat_template_kwargs", {{"enable_thinking", false}}, json::object()},
           {"continue_final_message", true, false},
           {"include_stop_str_in_output", true, false},
           {"modalities", {"text", "audio"}, {"text"}},
           {"max_new_tokens", 5, nullptr},
           {"min_new_tokens", 5, 0},
           {"mirostat", 2, 0},
           {"n_predict", 5, -1},
           {"prompt_logprobs", 1, nullptr},
           {"repeat_penalty", 1.1, 1},
           {"skip_special_tokens", false, true},
           {"truncate_prompt_tokens", 5, nullptr},
           {"typical_p", 0.5, 1},
           {"use_beam_search", true, false}}) {
    const auto refused = asked(name, value);
    EXPECT_EQ(refused.status, 400) << name;
    EXPECT_EQ(refused.json()["error"]["param"], name);
    EXPECT_EQ(refused.json()["error"]["code"], "unsupported_parameter");
    const auto taken = asked(name, harmless);
    EXPECT_EQ(taken.status, 200) << taken.body;
    EXPECT_FALSE(taken.json().contains("medusa")) << taken.body;
  }
}

TEST_F(RefusalsTest, ALongNameIsCutInItsWarning) {
  const json answer = complete({{"prompt", "a"}, {"max_tokens", 1}, {std::string(5000, 'x'), {}}});
  EXPECT_FALSE(answer.contains("medusa")) << "null";
  const json other =
      complete({{"prompt", "a"}, {"max_tokens", 1}, {std::string(5000, 'x'), json::object()}});
  EXPECT_EQ(other["medusa"]["warnings"],
            json({std::string(60, 'x') + "…: unknown field, ignored"}));
}

TEST_F(RefusalsTest, ARequestThatLeavesNoTokenToFollowIsRefused) {
  const TokenId end = tiny_->loaded().eos.at(0);
  const json body{{"prompt", "a"}, {"min_tokens", 5}, {"allowed_token_ids", {end}}};
  const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
  EXPECT_EQ(reply.status, 400) << reply.body;
  EXPECT_NE(reply.body.find("no token that may follow"), std::string::npos);
}

TEST_F(RefusalsTest, APromptLongerThanTheContextIsRefusedWithTheNumbers) {
  const json body{{"prompt", std::vector<int>(256, 5)}};
  const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["code"], "context_length_exceeded");
  EXPECT_NE(reply.body.find("256"), std::string::npos);
}

TEST_F(RefusalsTest, ALimitIsNamedByTheFieldOfItsApi) {
  const std::string text(2000, 'x');
  const auto field = [&](const std::string& path, const json& body) {
    const auto reply = ask(port(), "POST", path, body.dump());
    EXPECT_EQ(reply.json()["error"]["code"], "context_length_exceeded") << reply.body;
    return reply.json()["error"]["param"];
  };
  EXPECT_EQ(field("/v1/completions", {{"prompt", text}}), "prompt");
  EXPECT_EQ(field("/v1/responses", {{"input", text}}), "input");
  EXPECT_EQ(field("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", text}}}}}),
            "messages");
}

TEST_F(RefusalsTest, AnUnknownFieldIsIgnoredWithAWarning) {
  const json answer = complete({{"prompt", "a"}, {"max_tokens", 2}, {"colour", "red"}});
  EXPECT_EQ(answer["medusa"]["warnings"], json({"colour: unknown field, ignored"}));
  const json both{{"prompt", "a"}, {"max_tokens", 2}, {"max_completion_tokens", 1}};
  EXPECT_EQ(complete(both)["medusa"]["warnings"],
            json({"max_tokens: max_completion_tokens is there, too, ignored"}));
  const json inside{{"prompt", "a"},
                    {"messages", {{{"role", "user"}, {"content", "a"}}}},
                    {"max_tokens", 2},
                    {"stream", true},
                    {"stream_options", {{"colour", "red"}}}};
  for (const bool is_chat : {false, true}) {
    json body = inside;
    body.erase(is_chat ? "prompt" : "messages");
    const std::string path = is_chat ? "/v1/chat/completions" : "/v1/completions";
    const auto events = fixtures::events_of(ask(port(), "POST", path, body.dump()).body);
    EXPECT_EQ(events.at(0)["medusa"]["warnings"],
              json({"stream_options.colour: unknown field, ignored"}));
    for (const json& each : events)
      EXPECT_EQ(each["choices"].size(), 1U) << each << "\nclients read the choice of each";
    for (size_t i = 1; i < events.size(); ++i) EXPECT_FALSE(events[i].contains("medusa"));
  }
}

TEST_F(RefusalsTest, WhatAMessageOrAToolSaysBesidesIsIgnoredWithAWarning) {
  const json body = json::parse(R"({"max_tokens": 2, "store": true, "tool_choice": "none",
      "tools": [{"type": "function", "function": {"name": "go", "returns": "a"}}],
      "medusa": {"epsilon": 0.1, "colour": 1},
      "messages": [{"role": "user", "content": "a", "name": "Tom", "refusal": null}]})");
  const auto reply = ask(port(), "POST", "/v1/chat/completions", body.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["medusa"]["warnings"],
            json({"medusa.epsilon: only the rule typical reads it, ignored",
                  "tools[0].function.returns: unknown field, ignored",
                  "messages[0].name: unknown field, ignored", "store: unknown field, ignored",
                  "medusa.colour: unknown field, ignored"}));
  const json older = json::parse(R"({"messages": [{"role": "assistant", "content": "a",
      "function_call": {"name": "go"}}, {"role": "user", "content": "a"}]})");
  EXPECT_EQ(ask(port(), "POST", "/v1/chat/completions", older.dump()).json()["error"]["param"],
            "messages[0].function_call");
}

TEST_F(RefusalsTest, WhatAFormatOrAChoiceSaysBesidesIsIgnoredWithAWarning) {
  const json body =
      json::parse(R"j({"max_tokens": 2, "messages": [{"role": "user", "content": "a"}],
      "response_format": {"type": "json_schema", "colour": 1, "json_schema":
          {"name": "x", "description": "y", "strict": true, "schema": {}, "returns": "a"}}})j");
  const auto reply = ask(port(), "POST", "/v1/chat/completions", body.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["medusa"]["warnings"],
            json({"response_format.json_schema.returns: unknown field, ignored",
                  "response_format.colour: unknown field, ignored"}));
  const json chat =
      json::parse(R"j({"max_tokens": 2, "messages": [{"role": "user", "content": "a"}],
      "tools": [{"type": "function", "function": {"name": "go"}}], "tool_choice":
      {"type": "function", "strict": true, "function": {"name": "go", "colour": 1}}})j");
  EXPECT_EQ(ask(port(), "POST", "/v1/chat/completions", chat.dump()).json()["medusa"]["warnings"],
            json({"tool_choice.strict: unknown field, ignored",
                  "tool_choice.function.colour: unknown field, ignored"}));
  const json responses = json::parse(R"j({"max_output_tokens": 16, "input": "a",
      "text": {"format": {"type": "json_object", "colour": 1}},
      "tools": [{"type": "function", "name": "go"}], "tool_choice": "none"})j");
  EXPECT_EQ(ask(port(), "POST", "/v1/responses", responses.dump()).json()["medusa"]["warnings"],
            json({"text.format.colour: unknown field, ignored"}));
}

TEST_F(RefusalsTest, AKeyThatIsGivenTwiceIsNamed) {
  for (const char* body :
       {R"({"prompt": "a", "seed": 1, "seed": 2})",
        R"({"prompt": "a", "x": [{}, {"seed": 1, "b": {"seed": 1}, "seed": 2}]})"}) {
    const auto reply = ask(port(), "POST", "/v1/completions", body);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json()["error"]["message"],
              "the body has the key 'seed' twice in one object, expected each once; leave one of "
              "them out");
  }
  EXPECT_EQ(ask(port(), "POST", "/v1/completions",
                R"({"prompt": "a", "max_tokens": 1, "metadata": {"prompt": "a"}})")
                .status,
            200);
}

TEST(ApiErrors, MemoryThatHasRunOutIsNoBug) {
  EXPECT_EQ(server_fault(std::bad_alloc()).status(), 503);
  EXPECT_EQ(server_fault(std::runtime_error("x")).status(), 500);
  EXPECT_STREQ(server_fault(std::runtime_error("x")).what(), "x: this is a bug, please report it");
}

TEST_F(RefusalsTest, WarningsAreNotMoreThanSomebodyReads) {
  json body{{"prompt", "a"}, {"max_tokens", 2}};
  for (int i = 0; i < 500; ++i) body[fmt::format("field{}", i)] = i;
  const json warnings = complete(body)["medusa"]["warnings"];
  ASSERT_EQ(warnings.size(), 33U);
  EXPECT_EQ(warnings.back(), "more fields are ignored");
}

TEST_F(RefusalsTest, TokensAreCountedAsTextsAreAskedFor) {
  for (const auto& [path, body] : std::initializer_list<std::pair<const char*, json>>{
           {"/tokenize", {{"prompt", "a"}}}, {"/detokenize", {{"tokens", {5}}}}}) {
    json asked = body;
    EXPECT_FALSE(ask(port(), "POST", path, asked.dump()).json().contains("medusa"));
    asked["colour"] = "red";
    asked["model"] = "tiny";
    EXPECT_EQ(ask(port(), "POST", path, asked.dump()).json()["medusa"]["warnings"],
              json({"colour: unknown field, ignored"}));
    asked["model"] = "gpt-9";
    EXPECT_EQ(ask(port(), "POST", path, asked.dump()).status, 404) << path;
  }
}

TEST_F(RefusalsTest, AnotherModelIsNotThere) {
  const json body{{"prompt", "a"}, {"max_tokens", 2}, {"model", "gpt-9"}};
  for (const auto& reply : {ask(port(), "POST", "/v1/completions", body.dump()),
                            ask(port(), "GET", "/v1/models/gpt-9")}) {
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.json()["error"]["code"], "model_not_found");
    EXPECT_EQ(reply.json()["error"]["param"], "model");
  }
  const json models = ask(port(), "GET", "/v1/models").json()["data"];
  EXPECT_EQ(ask(port(), "GET", "/v1/models/" + models[0]["id"].get<std::string>()).json(),
            models[0]);
}

TEST_F(RefusalsTest, FieldsThatChangeNothingHaveTheirTypesToo) {
  for (const char* field : {"model", "user", "metadata"}) {
    const json body{{"prompt", "a"}, {"max_tokens", 2}, {field, 5}};
    const auto reply = ask(port(), "POST", "/v1/completions", body.dump());
    EXPECT_EQ(reply.status, 400) << field;
    EXPECT_EQ(reply.json()["error"]["param"], field);
  }
}

}  // namespace
}  // namespace medusa
