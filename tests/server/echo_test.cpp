// The prompt before its answer, as completions with echo have it.
#include <gtest/gtest.h>

#include "tests/server/server_fixture.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::events_of;
using nlohmann::json;

class EchoTest : public fixtures::ServerFixture {};

TEST_F(EchoTest, TokenIdsComeBackAsTheirText) {
  const json ids =
      ask(port(), "POST", "/tokenize", R"({"prompt": "Lily and Tom"})").json()["tokens"];
  const json answer = complete({{"prompt", ids}, {"max_tokens", 10}, {"echo", true}});
  const json text = ask(port(), "POST", "/detokenize", json{{"tokens", ids}}.dump()).json();
  EXPECT_EQ(answer["choices"][0]["text"],
            text["prompt"].get<std::string>() + tiny_->alone("Lily and Tom", 10, 0, 1));
}

TEST_F(EchoTest, LogprobsHaveARowForEachTokenOfThePrompt) {
  // As lm-eval asks for the likelihood of texts.
  const json prompts{{1, 300, 301, 260}, {1}, {5, 6, 7, 8, 9, 10}};
  const json answer = complete(
      {{"prompt", prompts}, {"max_tokens", 1}, {"logprobs", 1}, {"echo", true}, {"seed", 1}});
  ASSERT_EQ(answer["choices"].size(), prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    const json& logprobs = answer["choices"][i]["logprobs"];
    const size_t count = prompts[i].size() + 1;
    for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
      EXPECT_EQ(logprobs[list].size(), count) << list;
    EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
    EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
    EXPECT_EQ(logprobs["text_offset"][0], 0);
    for (size_t j = 1; j < count; ++j) {
      ASSERT_EQ(logprobs["top_logprobs"][j].size(), 1U);
      EXPECT_LE(logprobs["token_logprobs"][j], *logprobs["top_logprobs"][j].begin());
    }
    EXPECT_EQ(logprobs["token_logprobs"][count - 1], *logprobs["top_logprobs"][count - 1].begin())
        << "greedy";
  }
}

TEST_F(EchoTest, TextOffsetsCountWhatTheTextShows) {
  const Tokenizer& tokenizer = *tiny_->loaded().tokenizer;
  constexpr TokenId kBegin = 1, kByte = 3 + 0x9C;  // neither a character, nor the rest of one
  ASSERT_TRUE(tokenizer.is_special(kBegin));
  ASSERT_EQ(tokenizer.bytes(kByte), "\x9C");
  const json answer = complete({{"prompt", {kBegin, 300, kByte, 301, 302}},
                                {"max_tokens", 0},
                                {"logprobs", 0},
                                {"echo", true}});
  const auto size = static_cast<int64_t>(tokenizer.bytes(300).size());
  const auto next = static_cast<int64_t>(tokenizer.bytes(301).size());
  EXPECT_EQ(answer["choices"][0]["logprobs"]["text_offset"],
            json({0, 3, 3 + size, 4 + size, 4 + size + next}))
      << "behind <s>: " << answer;
}

TEST_F(EchoTest, ATextComesBackAsItWasSent) {
  const std::string sent = "Lily and Tom";
  json body{{"prompt", sent}, {"max_tokens", 6}, {"echo", true}};
  const std::string text = sent + tiny_->alone(sent, 6, 0, 1);
  EXPECT_EQ(complete(body)["choices"][0]["text"], text) << "no bos, and no space behind it";
  body["logprobs"] = 1;
  const json choice = complete(body)["choices"][0];
  EXPECT_EQ(choice["text"], text);
  const auto tokens = choice["logprobs"]["tokens"].get<std::vector<std::string>>();
  const auto offsets = choice["logprobs"]["text_offset"].get<std::vector<size_t>>();
  ASSERT_EQ(tokens.size(), offsets.size());
  EXPECT_EQ(tokens[0], "<s>");
  EXPECT_EQ(offsets[0], 0U);
  EXPECT_EQ(offsets[1], 0U);
  EXPECT_EQ(offsets[tokens.size() - 6], sent.size()) << "where the answer begins";
  for (size_t i = 2; i < tokens.size(); ++i)
    EXPECT_EQ(text.substr(offsets[i], tokens[i].size()), tokens[i]) << i;
}

TEST_F(EchoTest, AnswersRepeatOnlySoMuchOfTheirPrompts) {
  const json body{{"prompt", std::string(300'000, 'a')}, {"n", 16}};
  for (const char* field : {"echo", "return_token_ids"}) {
    json asked = body;
    asked[field] = true;
    const auto reply = ask(port(), "POST", "/v1/completions", asked.dump());
    EXPECT_EQ(reply.status, 400) << field;
    EXPECT_EQ(reply.json()["error"]["param"], field);
  }
}

TEST_F(EchoTest, AnEchoMayHaveNoTokenOfItsOwn) {
  json body{{"prompt", {1, 300, 301, 260}}, {"max_tokens", 1}, {"logprobs", 1}, {"echo", true}};
  json expected = complete(body)["choices"][0]["logprobs"];
  for (auto& [name, list] : expected.items()) list.erase(4);
  body["max_tokens"] = 0;
  const json answer = complete(body);
  const json& choice = answer["choices"][0];
  EXPECT_EQ(choice["logprobs"], expected);
  EXPECT_EQ(choice["text"],
            tiny_->loaded().tokenizer->decode(std::vector<TokenId>{1, 300, 301, 260}));
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 0);
  body["stream"] = true;
  const auto events = events_of(ask(port(), "POST", "/v1/completions", body.dump()).body);
  ASSERT_EQ(events.size(), 2U) << "the echo, and the end";
  EXPECT_EQ(events[0]["choices"][0]["text"], choice["text"]);
  EXPECT_EQ(events[0]["choices"][0]["logprobs"], expected);
  body.erase("echo");
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", body.dump()).status, 400);
}

TEST_F(EchoTest, AStreamOfAnEchoSaysTheSameLogprobs) {
  json body{{"prompt", {1, 300, 301, 260}}, {"max_tokens", 8}, {"logprobs", 1}, {"echo", true}};
  const json whole = complete(body)["choices"][0];
  body["stream"] = true;
  std::string text;
  json logprobs = json::object();
  for (const json& event : events_of(ask(port(), "POST", "/v1/completions", body.dump()).body))
    for (const json& choice : event["choices"]) {
      text += choice["text"].get<std::string>();
      const json lists = choice.value("logprobs", json::object());
      for (const auto& [name, list] : lists.items())
        for (const json& each : list) logprobs[name].push_back(each);
    }
  EXPECT_EQ(text, whole["text"]);
  EXPECT_EQ(logprobs, whole["logprobs"]);
}

}  // namespace
}  // namespace medusa
