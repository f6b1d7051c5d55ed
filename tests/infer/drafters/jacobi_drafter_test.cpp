#include "infer/drafters/research/jacobi_drafter.h"

#include <gtest/gtest.h>

#include "infer/rules/greedy_rule.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using Text = std::vector<TokenId>;

const JacobiConfig kFour{.block = 4};

/// [N, 10] logits whose largest are these tokens.
TargetOutput answers(const Text& tokens) {
  at::Tensor logits = at::zeros({static_cast<int64_t>(tokens.size()), 10});
  for (size_t i = 0; i < tokens.size(); ++i) logits[static_cast<int64_t>(i)][tokens[i]] = 1;
  return {logits, {}};
}

CandidateTree propose(JacobiDrafter& drafter, const Text& text, int32_t max_depth = 63,
                      int32_t max_nodes = 64) {
  return drafter.propose({text, {}, max_depth, max_nodes}, Random(1));
}

TEST(JacobiDrafter, StartsWithTokensOfTheText) {
  JacobiDrafter drafter(kFour);
  const CandidateTree tree = propose(drafter, {5, 7, 9});
  ASSERT_EQ(tree.size(), 5);
  EXPECT_EQ(tree.num_verify, 5);
  EXPECT_EQ(tree.parents, (std::vector<int32_t>{-1, 0, 1, 2, 3}));
  EXPECT_EQ(tree.tokens[0], 9);
  for (const TokenId token : tree.tokens) EXPECT_TRUE(token == 5 || token == 7 || token == 9);
}

TEST(JacobiDrafter, TheTargetsAnswersAreTheNextDrafts) {
  JacobiDrafter drafter(kFour);
  const Text text{7, 7};
  const CandidateTree first = propose(drafter, text);
  drafter.observe(first, answers({1, 2, 3, 4, 5}), {{}, 1});
  // The answer to the root was emitted; the others move up, and the block is filled from the text.
  EXPECT_EQ(propose(drafter, {7, 7, 1}).tokens[0], 1);
  const CandidateTree second = propose(drafter, {7, 7, 1});
  EXPECT_EQ(second.tokens, (Text{1, 2, 3, 4, 5}));
  // Two drafts stand: 2 and 3; what the rows behind them say is kept.
  drafter.observe(second, answers({2, 3, 8, 6, 9}), {{1, 2}, 8});
  const CandidateTree third = propose(drafter, {7, 7, 1, 2, 3, 8});
  EXPECT_EQ(Text(third.tokens.begin(), third.tokens.begin() + 3), (Text{8, 6, 9}));
  EXPECT_EQ(third.size(), 5);
}

TEST(JacobiDrafter, AfterABlockThatIsAcceptedWholeItStartsAnew) {
  JacobiDrafter drafter(kFour);
  const CandidateTree tree = propose(drafter, {7, 7});
  drafter.observe(tree, answers({7, 7, 7, 7, 3}), {{1, 2, 3, 4}, 3});
  EXPECT_EQ(propose(drafter, {7, 7, 7, 7, 7, 7, 3}).size(), 5);
}

TEST(JacobiDrafter, KeepsToDepthAndNodes) {
  JacobiDrafter drafter(kFour);
  EXPECT_EQ(propose(drafter, {5, 7, 9}, 0).size(), 1);
  EXPECT_EQ(propose(drafter, {5, 7, 9}, 2).size(), 3);
  EXPECT_EQ(propose(drafter, {5, 7, 9}, 63, 3).size(), 3);
}

TEST(JacobiDrafter, ATargetThatIgnoresItsDraftsIsReadABlockAStep) {
  // After one step every draft is the target's own answer, whatever came before it.
  constexpr int32_t kBlock = 6;
  class Constant : public fixtures::ToyTarget {
   public:
    PassOutput forward(std::span<const SlotTree> trees,
                       std::span<const PromptChunk> chunks) override {
      PassOutput output = fixtures::ToyTarget::forward(trees, chunks);
      for (TargetOutput& each : output.trees) {
        each.logits = at::zeros_like(each.logits);
        each.logits.select(1, 5).fill_(1);
      }
      return output;
    }
  } target;
  DecodeRequest request{{1, 2}, {61, 64, {}}, Random(1), [](const EmittedToken&) { return true; }};
  const auto make = [] { return std::make_unique<JacobiDrafter>(JacobiConfig{.block = kBlock}); };
  const DecodeStats stats = decode_one(target, GreedyRule(), make, request).stats;
  EXPECT_EQ(stats.emitted, 61);
  EXPECT_LE(stats.steps, 61 / (kBlock + 1) + 4);
}

}  // namespace
}  // namespace medusa
