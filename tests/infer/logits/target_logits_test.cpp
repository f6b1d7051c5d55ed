// Rows are processed where a rule looks, once, with the path that leads there.
#include "infer/logits/target_logits.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "infer/factory.h"
#include "infer/host_decoder.h"
#include "infer/rules/blockwise_rule.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/rejection_rule.h"
#include "infer/rules/typical_rule.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using Path = std::vector<TokenId>;

/// Notes the paths that it is asked for; doubles every logit.
struct Noting : LogitsProcessor {
  explicit Noting(std::vector<Path>& paths) : asked(paths) {}
  void process(std::span<const TokenId> path, std::span<float> row) override {
    asked.emplace_back(path.begin(), path.end());
    for (float& logit : row) logit *= 2;
  }
  std::vector<Path>& asked;
};

/// The root 9 with children 0 and 1, under each of them 2 and 3.
const CandidateTree kTree{{9, 0, 1, 2, 3, 2, 3}, {-1, 0, 0, 1, 1, 2, 2}, 7, {}};

/// [7, 10]: after node i the most probable token is best[i].
at::Tensor logits_with_best(const std::vector<TokenId>& best) {
  at::Tensor out = at::zeros({7, 10}, at::kFloat);
  for (size_t i = 0; i < best.size(); ++i) out[static_cast<int64_t>(i)][best[i]] = 5.0F;
  return out;
}

class TargetLogitsTest : public testing::Test {
 protected:
  ProcessedRows noting() {
    const std::vector<LogitsProcessorFactory> factories{
        [this] { return std::make_unique<Noting>(asked_); }};
    return {factories, Path{4}};
  }
  std::vector<Path> asked_;
};

TEST_F(TargetLogitsTest, WithoutProcessorsARowIsTheTargetsOwnMemory) {
  const at::Tensor logits = logits_with_best({1, 2});
  ProcessedRows none;
  const TargetLogits rows(logits, kTree, &none);
  EXPECT_EQ(rows.row(3).data(), static_cast<const float*>(logits.const_data_ptr()) + 30);
  EXPECT_EQ(TargetLogits(logits).row(3).data(), rows.row(3).data());
  EXPECT_THROW(TargetLogits(logits.to(at::kDouble)), std::logic_error);
  EXPECT_THROW(TargetLogits(logits.t()), std::logic_error);
}

TEST_F(TargetLogitsTest, ARowIsProcessedOnceInATreeAndAgainInTheNext) {
  ProcessedRows processed = noting();
  const at::Tensor logits = logits_with_best({1, 2, 3});
  for (int tree = 0; tree < 2; ++tree) {
    const TargetLogits rows(logits, kTree, &processed);
    const auto root = rows.row(0);
    const auto deep = rows.row(6);
    EXPECT_EQ(root[1], 10) << "a row stays where it is while others come";
    EXPECT_EQ(rows.row(0).data(), root.data());
    EXPECT_EQ(rows.row(6).data(), deep.data());
  }
  EXPECT_EQ(asked_, (std::vector<Path>{{}, {1, 3}, {}, {1, 3}}));
  EXPECT_EQ(logits.max().item<float>(), 5) << "the target's own rows stay";
}

TEST_F(TargetLogitsTest, EveryRuleAsksForTheNodesThatItReachesAlone) {
  const at::Tensor logits = logits_with_best({1, 5, 3, 5, 5, 5, 7});  // 1, then 3, then 7
  const SamplingConfig cold{.temperature = 0.05};
  const std::vector<std::shared_ptr<AcceptanceRule>> rules{
      std::make_shared<GreedyRule>(), std::make_shared<MatchRule>(cold),
      std::make_shared<RejectionRule>(cold),
      std::make_shared<TypicalRule>(TypicalConfig{}, SamplingConfig{}),
      std::make_shared<BlockwiseRule>(BlockwiseRuleConfig{})};
  for (const auto& rule : rules) {
    asked_.clear();
    ProcessedRows processed = noting();
    const Acceptance out =
        rule->accept(kTree, TargetLogits(logits, kTree, &processed), 0, Random(1));
    EXPECT_EQ(out.path, (std::vector<int32_t>{2, 6}));
    EXPECT_EQ(out.next, 7);
    EXPECT_EQ(asked_, (std::vector<Path>{{}, {1}, {1, 3}}));
  }
}

TEST_F(TargetLogitsTest, NoRuleAcceptsATokenThatCannotCome) {
  struct Ban : LogitsProcessor {
    void process(std::span<const TokenId>, std::span<float> row) override {
      row[1] = -std::numeric_limits<float>::infinity();
    }
  };
  const std::vector<LogitsProcessorFactory> ban{[] { return std::make_unique<Ban>(); }};
  const CandidateTree one{{9, 1}, {-1, 0}, 2, {}};
  const at::Tensor logits = logits_with_best({1, 5});
  const SamplingConfig warm{.temperature = 1};
  const std::vector<std::shared_ptr<AcceptanceRule>> rules{
      std::make_shared<GreedyRule>(),
      std::make_shared<MatchRule>(warm),
      std::make_shared<RejectionRule>(warm),
      std::make_shared<TypicalRule>(TypicalConfig{0, 0}, SamplingConfig{}),
      std::make_shared<TypicalRule>(TypicalConfig{0, 0}, warm),
      std::make_shared<BlockwiseRule>(BlockwiseRuleConfig{5, 3})};
  for (size_t i = 0; i < rules.size(); ++i) {
    ProcessedRows processed(ban, Path{4});
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Acceptance out =
          rules[i]->accept(one, TargetLogits(logits, one, &processed), 0, Random(seed));
      EXPECT_TRUE(out.path.empty()) << i;
      EXPECT_NE(out.next, 1) << i;
    }
  }
}

TEST_F(TargetLogitsTest, WhereNoTokenMayFollowTheRequestFailsAndTheOthersRunOn) {
  struct BanAll : LogitsProcessor {
    void take(TokenId) override { ++taken; }
    void process(std::span<const TokenId> path, std::span<float> row) override {
      if (taken + std::ssize(path) >= 5)
        std::fill(row.begin(), row.end(), -std::numeric_limits<float>::infinity());
    }
    int64_t taken = 0;
  };
  fixtures::ToyTarget target(2);
  HostDecoder decoder(target, std::make_shared<GreedyRule>(),
                      [] { return std::make_unique<NoneDrafter>(); });
  std::vector<TokenId> dead, alive;
  DecodeRequest request = fixtures::toy_request({1, 2}, {20, 12, {}}, 1, dead);
  request.processors.emplace_back([] { return std::make_unique<BanAll>(); });
  decoder.submit(std::move(request));
  decoder.submit(fixtures::toy_request({1, 2}, {20, 12, {}}, 1, alive));
  const auto ended = decoder.drain();
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(fixtures::error_text([&] { std::rethrow_exception(ended[0].error); }),
            "the request leaves no token that may follow, expected at least one; allow more "
            "tokens, or lower min_tokens");
  EXPECT_EQ(dead.size(), 5U);
  EXPECT_EQ(alive, fixtures::plain_text({1, 2}, 20, fixtures::kGreedy, Random(1)));
}

}  // namespace
}  // namespace medusa
