// Answers that help each other: the same texts in fewer steps, and what the server says of them.
#include <gtest/gtest.h>

#include "base/json_text.h"
#include "tests/server/exposition_reader.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::RunningServer;
using nlohmann::json;

double metric(const RunningServer& server, const std::string& name, const std::string& label = "") {
  const auto all = fixtures::read_exposition(ask(server.port(), "GET", "/metrics").body);
  double sum = 0;
  for (const auto& sample : all.at("medusa:" + name).samples)
    if (label.empty() || sample.labels.at("source") == label) sum += sample.value;
  return sum;
}

std::string complete(const RunningServer& server, const std::string& drafter, double temperature,
                     int seed) {
  const json body{{"prompt", "Once upon a time there was"},
                  {"max_tokens", 80},
                  {"temperature", temperature},
                  {"seed", seed},
                  {"medusa", {{"drafter", drafter}}}};
  return ask(server.port(), "POST", "/v1/completions", body.dump())
      .json()["choices"][0]["text"]
      .get<std::string>();
}

TEST(SharedAnswers, AreTheSameTextsInFewerSteps) {
  for (const char* drafter : {"shared", "merge"})
    for (const double temperature : {0.0, 0.8}) {
      fixtures::TinyServed tiny(2);
      const RunningServer server(tiny.model());
      const double kept = metric(server, "shared_answers");
      double steps_before = 0, steps_of_first = 0;
      for (int i = 0; i < 4; ++i) {  // the last one is another text with the same beginning
        const int seed = i < 3 ? 1 : 2;
        const std::string alone =
            tiny.alone("Once upon a time there was", 80, temperature, static_cast<uint64_t>(seed));
        EXPECT_EQ(json(complete(server, drafter, temperature, seed)),
                  json::parse(json_text(json(alone))))  // with half characters replaced
            << drafter << " at " << temperature << ", answer " << i;
        const double steps = metric(server, "spec_decode_num_drafts_total");
        if (i == 0) steps_of_first = steps;
        if (i == 2) {  // heads and prompt lookup need few steps by themselves
          const double most = drafter == std::string("shared") ? 0.5 : 0.95;
          EXPECT_LT(steps - steps_before, most * steps_of_first) << drafter << temperature;
        }
        steps_before = steps;
      }
      EXPECT_GT(metric(server, "tokens_by_source_total", "shared"), 0) << drafter << temperature;
      // What was answered twice is kept once. The last answer is read before it is counted.
      const double expected = kept + (temperature == 0 ? 1 : 2);
      for (int i = 0; i < 100 && metric(server, "shared_answers") != expected; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(metric(server, "shared_answers"), expected) << drafter << temperature;
      EXPECT_GT(metric(server, "shared_bytes"), 1000);
    }
}

/// The tree of each step of an answer to what somebody else was answered before.
json steps_after_another(const RunningServer& server, json medusa, double temperature) {
  complete(server, "none", 0, 1);
  medusa["steps"] = true;
  const json body{{"prompt", "Once upon a time there was"},
                  {"max_tokens", 80},
                  {"temperature", temperature},
                  {"medusa", std::move(medusa)}};
  const auto reply = ask(server.port(), "POST", "/v1/completions", body.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json()["choices"][0]["medusa"]["steps"];
}

TEST(SharedAnswers, AreReadByNobodyInDrafts) {
  fixtures::TinyServed tiny(2);
  const RunningServer server(tiny.model());
  const auto refusal = [&](const json& medusa, double temperature = 1) {
    const json body{{"prompt", "Once"}, {"temperature", temperature}, {"medusa", medusa}};
    const auto reply = ask(server.port(), "POST", "/v1/completions", body.dump());
    if (reply.status != 400) return std::string();
    EXPECT_EQ(reply.json()["error"]["param"], "medusa.drafter");
    const std::string message = reply.json()["error"]["message"];
    return message.substr(message.find("; choose another one, or ") + 2);
  };
  for (const double temperature : {0.0, 1.0})
    EXPECT_EQ(refusal({{"drafter", "shared"}, {"steps", true}}, temperature),
              "choose another one, or leave medusa.steps out");
  for (const char* rule : {"typical", "rejection"})
    EXPECT_EQ(refusal({{"drafter", "shared"}, {"rule", rule}}),
              "choose another one, or the rule auto");
  EXPECT_EQ(refusal({{"drafter", "shared"}, {"rule", "auto"}}), "");
  for (const json& step : steps_after_another(server, {{"drafter", "merge"}}, 0))
    for (const json& drafter : step["drafters"]) EXPECT_NE(drafter, "shared");
  EXPECT_EQ(metric(server, "tokens_by_source_total", "shared"), 0);
  // Under this rule whatever is drafted stands: one text would be the other.
  const json body{
      {"prompt", "Once upon a time there was"},
      {"max_tokens", 80},
      {"temperature", 1},
      {"medusa", {{"drafter", "merge"}, {"rule", "typical"}, {"epsilon", 1e-9}, {"delta", 1e-9}}}};
  const auto reply = ask(server.port(), "POST", "/v1/completions", body.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(metric(server, "tokens_by_source_total", "shared"), 0);
}

// Rejection keeps the distribution, but which text a seed gives depends on what is drafted.
TEST(SharedAnswers, ASeedGivesTheSameTextUnderRejectionWhateverOthersWereAnswered) {
  fixtures::TinyServed tiny(2);
  const RunningServer server(tiny.model());
  const auto text = [&] {
    const json body{{"prompt", "Once upon a time there was"},
                    {"max_tokens", 40},
                    {"temperature", 1},
                    {"seed", 5},
                    {"medusa", {{"drafter", "merge"}, {"rule", "rejection"}}}};
    return ask(server.port(), "POST", "/v1/completions", body.dump())
        .json()["choices"][0]["text"]
        .get<std::string>();
  };
  const std::string alone = text();
  for (const int seed : {1, 5, 7}) complete(server, "none", 1, seed);
  EXPECT_EQ(text(), alone);
  EXPECT_EQ(metric(server, "tokens_by_source_total", "shared"), 0);
}

TEST(SharedAnswers, AreKeptNowhereWithoutAPlaceForThem) {
  fixtures::TinyServed tiny(2);
  ServedModel model = tiny.model();
  SharedTexts& texts = *std::exchange(model.shared, nullptr);
  const int64_t before = texts.use().texts;
  const RunningServer server(std::move(model));
  complete(server, "merge", 0, 1);
  EXPECT_EQ(texts.use().texts, before);
  EXPECT_EQ(metric(server, "shared_answers"), 0);
}

}  // namespace
}  // namespace medusa
