// What a server's KV cache holds, and what later requests find in it.
#include <gtest/gtest.h>

#include <future>

#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using nlohmann::json;

class CachedPromptsTest : public testing::Test {
 protected:
  json complete(const json& body) const {
    const auto reply = ask(server_.port(), "POST", "/v1/completions", body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }

  /// A value of /metrics once nothing runs any more: a step ends after its answer was sent.
  double metric_at_rest(const std::string& name) const {
    for (int i = 0; i < 250; ++i) {
      const std::string text = ask(server_.port(), "GET", "/metrics").body;
      const auto value = [&text](const std::string& line) {
        const size_t at = text.find("\n" + line + " ");
        return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size() + 2));
      };
      if (value("medusa:cache_blocks_used") == 0) return value(name);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return -1;
  }

  // 192 tokens, six blocks: less than one sequence of the context of 512.
  fixtures::TinyServed tiny_{4, 192, true};
  fixtures::RunningServer server_{tiny_.model()};
};

std::vector<int> story(size_t tokens) {
  std::vector<int> ids;
  for (size_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int>(5 + i * i % 60));
  return ids;
}

TEST_F(CachedPromptsTest, AConversationGoesOnBehindItsLastTurnWithTheSameText) {
  const std::vector<int> prompt = story(50);
  const json body{
      {"prompt", prompt}, {"max_tokens", 30}, {"ignore_eos", true}, {"return_token_ids", true}};
  const json first = complete(body);
  EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(metric_at_rest("medusa:cache_blocks_total"), 6);
  EXPECT_EQ(metric_at_rest("medusa:cache_blocks_kept"), 2) << "79 rows: two full blocks";
  EXPECT_GT(metric_at_rest("medusa:cache_bytes"), 0);

  const json again = complete(body);
  EXPECT_EQ(again["usage"]["prompt_tokens_details"]["cached_tokens"], 32);
  EXPECT_EQ(again["choices"][0]["text"], first["choices"][0]["text"]);

  std::vector<int> longer = prompt;
  for (const json& id : first["choices"][0]["token_ids"]) longer.push_back(id.get<int>());
  const json next_body{{"prompt", longer}, {"max_tokens", 30}, {"ignore_eos", true}};
  const json next = complete(next_body);
  EXPECT_EQ(next["usage"]["prompt_tokens_details"]["cached_tokens"], 64);
  fixtures::TinyServed other(1, std::nullopt, true);
  const fixtures::RunningServer fresh(other.model());
  const auto alone = ask(fresh.port(), "POST", "/v1/completions", next_body.dump());
  EXPECT_EQ(next["choices"][0]["text"], alone.json()["choices"][0]["text"]);
  EXPECT_EQ(metric_at_rest("medusa:prefix_cache_queries_total"), 50 + 50 + 80);
  EXPECT_EQ(metric_at_rest("medusa:prefix_cache_hits_total"), 32 + 64);
}

TEST_F(CachedPromptsTest, APromptsTokensAreCountedOnceForAllItsAnswers) {
  const json body{{"prompt", {story(40), story(45)}}, {"max_tokens", 3}, {"n", 2}};
  complete(body);
  EXPECT_EQ(metric_at_rest("medusa:cache_blocks_used"), 0);
  const json usage = complete(body)["usage"];
  EXPECT_EQ(usage["prompt_tokens"], 85);
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 64);
}

TEST_F(CachedPromptsTest, ARequestThatNeverFitsIsRefusedAndOthersWaitForRoom) {
  const json large{{"prompt", story(60)}, {"max_tokens", 440}};
  const auto reply = ask(server_.port(), "POST", "/v1/completions", large.dump());
  EXPECT_EQ(reply.status, 400);
  const json error = reply.json()["error"];
  EXPECT_EQ(error["code"], "cache_too_small");
  EXPECT_NE(error["message"].get<std::string>().find("may need 512 rows"), std::string::npos);
  EXPECT_NE(error["message"].get<std::string>().find("found 192 in all"), std::string::npos);

  // Each needs 104 of the 192 tokens: one runs, the others wait.
  std::vector<std::future<json>> answers;
  for (size_t i = 0; i < 3; ++i)
    answers.push_back(std::async(std::launch::async, [&, i] {
      return complete({{"prompt", story(10 + i)}, {"max_tokens", 28}, {"ignore_eos", true}});
    }));
  for (auto& each : answers) EXPECT_EQ(each.get()["usage"]["completion_tokens"], 28);
  EXPECT_EQ(metric_at_rest("medusa:cache_blocks_used"), 0);
}

TEST_F(CachedPromptsTest, TheModelsListSaysHowManyTokensFit) {
  const json model = ask(server_.port(), "GET", "/v1/models").json()["data"][0];
  EXPECT_EQ(model["max_model_len"], 512);
  EXPECT_EQ(model["medusa"]["cache_tokens"], 192);
}

}  // namespace
}  // namespace medusa
