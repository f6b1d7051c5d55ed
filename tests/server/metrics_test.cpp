// What /metrics says, read by a strict reader, and the dashboard that shows it.
#include "server/metrics/metrics.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/file.h"
#include "tests/server/exposition_reader.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::MetricFamily;
using fixtures::MetricSample;
using fixtures::read_exposition;
using fixtures::RunningServer;
using nlohmann::json;

class MetricsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tiny_ = new fixtures::TinyServed(2); }
  static void TearDownTestSuite() { delete std::exchange(tiny_, nullptr); }

  using Families = std::map<std::string, MetricFamily>;
  static Families metrics_of(const RunningServer& server) {
    const auto reply = ask(server.port(), "GET", "/metrics");
    EXPECT_EQ(reply.status, 200);
    return read_exposition(reply.body);
  }
  static double value(const Families& all, const std::string& name) {
    for (const MetricSample& sample : all.at(name.substr(0, name.find("_count"))).samples)
      if (sample.name == name) return sample.value;
    ADD_FAILURE() << "no " << name;
    return 0;
  }
  static double sum(const MetricFamily& family) {
    double out = 0;
    for (const MetricSample& sample : family.samples) out += sample.value;
    return out;
  }
  static json complete(const RunningServer& server, const json& body) {
    return ask(server.port(), "POST", "/v1/completions", body.dump()).json();
  }

  static fixtures::TinyServed* tiny_;
};

fixtures::TinyServed* MetricsTest::tiny_ = nullptr;

TEST_F(MetricsTest, TheyAreWhatTheAnswersWere) {
  const RunningServer server(tiny_->model());
  metrics_of(server);  // nothing was asked yet
  double tokens = 0, steps = 0, drafts = 0, stood = 0;
  std::map<size_t, double> by_depth;
  for (const char* drafter : {"none", "medusa", "merge"}) {
    const json answer = complete(server, {{"prompt", "Lily and Tom. Lily and Tom. Lily and"},
                                          {"max_tokens", 40},
                                          {"medusa", {{"drafter", drafter}}}});
    const json stats = answer["metrics"]["speculative_decoding"];
    tokens += answer["usage"]["completion_tokens"].get<double>();
    steps += stats["num_spec_steps"].get<double>();
    drafts += stats["num_draft_tokens"].get<double>();
    stood += stats["num_accepted_draft_tokens"].get<double>();
  }
  EXPECT_EQ(ask(server.port(), "POST", "/v1/completions", "{}").status, 400);
  const auto all = metrics_of(server);
  EXPECT_EQ(value(all, "medusa:generation_tokens_total"), tokens);
  EXPECT_EQ(value(all, "medusa:spec_decode_num_drafts_total"), steps);
  EXPECT_EQ(value(all, "medusa:spec_decode_num_draft_tokens_total"), drafts);
  EXPECT_EQ(value(all, "medusa:spec_decode_num_accepted_tokens_total"), stood);
  EXPECT_EQ(sum(all.at("medusa:spec_decode_num_accepted_tokens_per_pos_total")), stood);
  EXPECT_EQ(sum(all.at("medusa:tokens_by_source_total")), stood + steps);
  EXPECT_EQ(value(all, "medusa:tree_nodes_count"), steps);
  for (const char* each :
       {"request_queue_time_seconds", "request_prefill_time_seconds", "time_to_first_token_seconds",
        "request_decode_time_seconds", "e2e_request_latency_seconds", "request_prompt_tokens",
        "request_generation_tokens", "request_max_num_generation_tokens"})
    EXPECT_EQ(value(all, std::string("medusa:") + each + "_count"), 3) << each;
  EXPECT_EQ(value(all, "medusa:inter_token_latency_seconds_count"), tokens - 3);
  std::map<std::string, double> answers;
  for (const MetricSample& sample : all.at("medusa:http_requests_total").samples)
    answers[sample.labels.at("status")] = sample.value;
  EXPECT_EQ(answers["200"], 4) << "three texts, and the metrics before";
  EXPECT_EQ(answers["400"], 1);
  EXPECT_EQ(sum(all.at("medusa:request_success_total")), 3);
}

TEST_F(MetricsTest, TheyHaveVllmsNamesWhereTheseAreAskedFor) {
  ServedModel odd = tiny_->model();
  odd.name = "a \"quoted\\name\"\nof two lines";
  const RunningServer server(odd, {.metrics_names = MetricsNames::Vllm});
  complete(server, {{"prompt", "Once"}, {"max_tokens", 5}});
  const auto all = metrics_of(server);
  for (const char* name :
       {"num_requests_running", "num_requests_waiting", "prompt_tokens_total",
        "generation_tokens_total", "request_success_total", "time_to_first_token_seconds",
        "inter_token_latency_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds",
        "request_prefill_time_seconds", "request_decode_time_seconds", "request_prompt_tokens",
        "request_generation_tokens", "request_max_num_generation_tokens", "kv_cache_usage_perc",
        "spec_decode_num_drafts_total", "spec_decode_num_draft_tokens_total",
        "spec_decode_num_accepted_tokens_total", "spec_decode_num_accepted_tokens_per_pos_total"})
    EXPECT_TRUE(all.contains(std::string("vllm:") + name)) << name;
  for (const auto& [name, family] : all) {
    EXPECT_TRUE(name.starts_with("vllm:")) << name;
    for (const MetricSample& sample : family.samples)
      EXPECT_EQ(sample.labels.at("model_name"), odd.name);
  }
  EXPECT_EQ(all.at("vllm:request_success_total").samples.at(0).labels.at("finished_reason"),
            "length");
}

TEST_F(MetricsTest, TheDashboardShowsOnlyWhatIsThere) {
  const RunningServer server(tiny_->model());
  const auto all = metrics_of(server);
  const json dashboard = json::parse(read_file(MEDUSA_SOURCE_DIR "/docs/guide/grafana.json"));
  EXPECT_GE(dashboard["panels"].size(), 10U);
  const std::string text = dashboard.dump();
  const std::regex name("medusa:[a-zA-Z0-9_]+");
  int64_t shown = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
    std::string each = match->str();
    if (each.ends_with("_bucket")) each.resize(each.size() - std::string("_bucket").size());
    EXPECT_TRUE(all.contains(each)) << match->str();
    ++shown;
  }
  EXPECT_GT(shown, 15);
}

}  // namespace
}  // namespace medusa
