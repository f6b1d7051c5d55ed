// The parts of a step: what they must do, how they are timed, and how they are shown.
#include "tools/profile/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "infer/rules/greedy_rule.h"
#include "tests/backbone/tiny_model.h"
#include "tests/heads/random_heads.h"
#include "tests/tools/expect_parts.h"
#include "tools/profile/profile_result.h"
#include "tools/profile/roofline.h"
#include "tools/profile/step_work.h"

namespace medusa {
namespace {

Profile example_profile() {
  Profile profile{
      .machine = "Example CPU, 2 threads",
      .backbone = "sha256:4f0c",
      .repeats = 16,
      .drafted = true,
      .roofline = {.read_bytes_per_s = 10e9, .copy_bytes_per_s = 8e9, .flops_per_s = 100e9},
      .steps = {}};
  for (const int64_t context : {64, 512})
    for (const int32_t rows : {1, 16})
      profile.steps.push_back({context,
                               rows,
                               {{"drafting", 0.5, {}},
                                {"QKV, rope, cache write", 2, {10e6, rows * 10e6}},
                                {"attention", 1, {1e6, rows * 1e6}},
                                {"gate, up, activation", 4, {20e6, rows * 20e6}},
                                {"LM head", 2, {15e6, rows * 15e6}},
                                {"host", 0.5, {}}}});
  return profile;
}

using fixtures::expect_parts;

TEST(StepWork, CountsWeightsCacheAndGemmsOnce) {
  const ModelConfig config = tiny_config();  // H 64, A 4, G 2, D 32, I 96, V 130, two layers
  std::array<int64_t, kNumForwardStages> weights{};
  weights[static_cast<size_t>(ForwardStage::Qkv)] = 1000;
  const auto work = pass_work(config, weights, 2, /*rows=*/3, /*context=*/10);
  const auto at = [&](ForwardStage part) { return work[static_cast<size_t>(part)]; };
  EXPECT_EQ(at(ForwardStage::Qkv).bytes, 1000);
  EXPECT_EQ(at(ForwardStage::Qkv).flops, 2 * (2 * 3 * 64 * (4 + 2 * 2) * 32));
  EXPECT_EQ(at(ForwardStage::CacheWrite).bytes, 2 * 3 * (2 * 2 * 32) * 2);
  EXPECT_EQ(at(ForwardStage::Attention).bytes, 2 * (10 + 3) * (2 * 2 * 32) * 2);
  EXPECT_EQ(at(ForwardStage::Attention).flops, 2 * (11 + 12 + 13) * 2 * 2 * (4 * 32));
  EXPECT_EQ(at(ForwardStage::GateUp).flops, 2 * (2 * 3 * 64 * 2 * 96));
  EXPECT_EQ(at(ForwardStage::LmHead).bytes, 3 * 130 * 4);
  EXPECT_EQ(at(ForwardStage::LmHead).flops, 2 * 3 * 130 * 64);
}

TEST(Profile, SharesAreOfTheMeasuredRoofline) {
  const Roofline roofline{.read_bytes_per_s = 10e9, .copy_bytes_per_s = 12e9, .flops_per_s = 100e9};
  const ProfiledPart part{"down", 2, {12e6, 50e6}};  // 6 GB/s, 25 GFLOP/s
  EXPECT_DOUBLE_EQ(shares_of(part, roofline).memory, 0.5);
  EXPECT_DOUBLE_EQ(shares_of(part, roofline).arithmetic, 0.25);
  EXPECT_EQ(roofline_text(part, roofline), "50 % of memory");
  EXPECT_EQ(roofline_text({"down", 2, {0, 50e6}}, roofline), "25 % of arithmetic");
  EXPECT_EQ(roofline_text({"host", 2, {}}, roofline), "–");
}

TEST(Profile, TreesOfAnySizeAreMadeOfLowRanks) {
  EXPECT_EQ(low_rank_paths(2, 3, 5), (std::vector<RankPath>{{0}, {1}, {0, 0}, {2}, {0, 1}}));
  EXPECT_EQ(low_rank_paths(1, 3, 9).size(), 3U) << "there are no more";
  const std::vector<RankPath> many = low_rank_paths(4, 10, 63);
  ASSERT_EQ(many.size(), 63U);
  const std::set<RankPath> known(many.begin(), many.end());
  EXPECT_EQ(known.size(), 63U);
  for (const RankPath& path : many)
    if (path.size() > 1) {
      EXPECT_TRUE(known.contains({path.begin(), path.end() - 1}));
    }
}

TEST(Profile, EveryStageOfAStepIsTimed) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Weights weights = tiny_weights(1, tiny_config(), dtype);
    Llama llama(weights);
    const ProfilePlan plan{{1, 5, 17}, {7, 40}, 3};
    const Profile chains = profile_steps(llama, plan, nullptr);
    ASSERT_EQ(chains.steps.size(), 6U);
    EXPECT_EQ(chains.steps[4].context, 40);
    EXPECT_EQ(chains.steps[4].rows, 5);
    for (const ProfiledStep& step : chains.steps) {
      ASSERT_EQ(step.parts.size(), chains.steps[0].parts.size());
      for (const ProfiledPart& part : step.parts)
        EXPECT_TRUE(part.ms > 0 || part.name == "host") << part.name;
    }
    const std::string first = llama.uses_pool() ? "QKV, rope, cache write" : "QKV";
    EXPECT_EQ(chains.steps[0].parts[2].name, first);
    EXPECT_EQ(chains.steps[0].parts[2].work.bytes,
              static_cast<double>(llama.weight_bytes()[static_cast<size_t>(ForwardStage::Qkv)]) +
                  (llama.uses_pool() ? 2 * 128 * 2 : 0));
    HeadsRunner runner(random_heads(heads_config(HeadInput::Hidden, HeadOutput::Shared), weights),
                       weights, 10);
    const Profile trees = profile_steps(llama, plan, &runner);
    EXPECT_EQ(trees.steps[0].parts[0].name, "drafting");
    EXPECT_GT(trees.steps[2].parts[0].ms, 0);
  }
}

/// Stands in for the greedy rule and counts.
class CountingRule : public GreedyRule {
 public:
  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override {
    ++count;
    return GreedyRule::accept(tree, logits, root_position, random);
  }
  mutable int64_t count = 0;
};

TEST(Profile, StepsAreJudgedByTheRuleThatIsGiven) {
  Llama llama(tiny_weights(1, tiny_config(), at::kBFloat16));
  const auto rule = std::make_shared<CountingRule>();
  profile_steps(llama, {{1, 5}, {7}, 3}, nullptr, rule);
  EXPECT_GE(rule->count, 6);
}

TEST(Profile, TheTableShowsEveryPart) {
  const std::string text = profile_table(example_profile());
  expect_parts(text, {"memory is read at 10.0 GB/s and copied at 8.0 GB/s", "100 GFLOP/s",
                      "behind 64 tokens", "behind 512 tokens", "gate, up, activation",
                      "step                       10.000   10.000",
                      "step / 1 row                 1.00     1.00",
                      "  QKV, rope, cache write       50 m     80 a"});
}

TEST(Profile, WhatTheHostStartsIsToldOfDevices) {
  Profile profile = example_profile();
  EXPECT_EQ(profile_table(profile).find("kernels"), std::string::npos);
  for (ProfiledStep& step : profile.steps) step.launches = Launches{300 + step.rows, 20};
  expect_parts(profile_table(profile), {"  kernels started               301      316",
                                        "  LibTorch's ops                 20       20"});
  expect_parts(profile_page(profile), {"kernels started", "316"});
  EXPECT_EQ(nlohmann::json::parse(profile_json(profile).dump())["steps"][1]["kernels"], 316);
}

TEST(Profile, ThePageIsOneFileThatLoadsNothing) {
  const std::string page = profile_page(example_profile());
  expect_parts(page, {"<svg", "Behind 512 tokens", "Where a step&#39;s time goes",
                      "80 % of arithmetic", "Example CPU, 2 threads"});
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http://"), page.find("http://www.w3.org"));
  EXPECT_EQ(page, profile_page(example_profile()));
}

TEST(Profile, TheNumbersAreAllInTheFile) {
  const auto out = nlohmann::json::parse(profile_json(example_profile()).dump());
  EXPECT_EQ(out.at("format"), "medusa-profile");
  EXPECT_EQ(out.at("roof").at("flops_per_s"), 100e9);
  ASSERT_EQ(out.at("steps").size(), 4U);
  const auto& step = out["steps"][1];
  EXPECT_EQ(step.at("rows"), 16);
  EXPECT_EQ(step.at("step_ms"), 10.0);
  EXPECT_EQ(step.at("parts").at(1).at("share_of_arithmetic_roof"), 0.8);
}

}  // namespace
}  // namespace medusa
