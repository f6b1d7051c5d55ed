#include "infer/drafters/merge_drafter.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using Text = std::vector<TokenId>;
using Parents = std::vector<int32_t>;

const Text kText{1, 2, 3};

/// Always proposes the same tree, as far as it fits.
class Fixed : public Drafter {
 public:
  explicit Fixed(CandidateTree tree) : tree_(std::move(tree)) {}
  CandidateTree propose(const DraftContext& context, const Random&) override {
    CandidateTree out = tree_;
    out.num_verify = std::min(context.max_nodes, out.size());
    out.tokens.resize(static_cast<size_t>(out.num_verify));
    out.parents.resize(static_cast<size_t>(out.num_verify));
    return out;
  }

 private:
  CandidateTree tree_;
};

CandidateTree tree_of(const Text& tokens, const Parents& parents) {
  return {tokens, parents, static_cast<int32_t>(tokens.size()), {}};
}

MergeDrafter merge(int32_t budget, const std::vector<CandidateTree>& trees, StepCost cost = {}) {
  std::vector<Proposer> proposers;
  for (const CandidateTree& tree : trees)
    proposers.push_back({DrafterKind::None, std::make_unique<Fixed>(tree)});
  return {std::move(proposers), budget, std::move(cost)};
}

/// Each row beyond the first costs so much of a plain step.
StepCost linear(double per_row) { return {{1, 1 + per_row}}; }

CandidateTree propose(MergeDrafter& drafter, int32_t max_nodes = 64, int32_t sequences = 1) {
  return drafter.propose({kText, {}, 63, max_nodes, 0, sequences}, Random(1));
}

constexpr int32_t kAll = 64;  // nodes

TEST(MergeDrafter, WhatDraftersHaveInCommonIsProposedOnce) {
  // 3 - 4 - 5 - 6 and 3 - 4 - {7, 5 - 8}: one 4, one 5, three leaves.
  MergeDrafter drafter = merge(
      kAll, {tree_of({3, 4, 5, 6}, {-1, 0, 1, 2}), tree_of({3, 4, 7, 5, 8}, {-1, 0, 1, 1, 3})});
  const CandidateTree tree = propose(drafter);
  EXPECT_EQ(tree.tokens, (Text{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(tree.parents, (Parents{-1, 0, 1, 2, 1, 2}));
  EXPECT_EQ(tree.num_verify, 6);
}

TEST(MergeDrafter, EachNodeNamesTheDrafterThatGivesItsProbability) {
  std::vector<Proposer> proposers;
  proposers.push_back(
      {DrafterKind::Medusa, std::make_unique<Fixed>(tree_of({3, 4, 5}, {-1, 0, 0}))});
  proposers.push_back(
      {DrafterKind::PromptLookup, std::make_unique<Fixed>(tree_of({3, 4, 6}, {-1, 0, 1}))});
  MergeDrafter drafter(std::move(proposers), kAll, {});
  const CandidateTree tree = propose(drafter);
  ASSERT_EQ(tree.drafters.size(), tree.tokens.size());
  for (size_t i = 1; i < tree.tokens.size(); ++i) {
    const bool is_lookups = tree.tokens[i] == 6;
    EXPECT_EQ(tree.drafters[i], is_lookups ? DrafterKind::PromptLookup : DrafterKind::Medusa);
  }
  EXPECT_EQ(tree.drafters[0], DrafterKind::None) << "nobody proposes the root";
  MergeDrafter alone = merge(kAll, {tree_of({3, 4}, {-1, 0})});
  EXPECT_TRUE(propose(alone).drafters.empty());
}

TEST(MergeDrafter, AnEmptyProposalLeavesTheOther) {
  MergeDrafter drafter = merge(kAll, {tree_of({3}, {-1}), tree_of({3, 4, 5}, {-1, 0, 0})});
  EXPECT_EQ(propose(drafter).tokens, (Text{3, 4, 5}));
  MergeDrafter nothing = merge(kAll, {tree_of({3}, {-1}), tree_of({3}, {-1})});
  EXPECT_EQ(propose(nothing).tokens, (Text{3}));
}

/// Steps in which the text went on with these tokens, none of them accepted but the last.
void count(MergeDrafter& drafter, TokenId next, int times) {
  for (int i = 0; i < times; ++i) {
    const CandidateTree tree = propose(drafter);
    drafter.observe(tree, {}, {{}, next});
  }
}

TEST(MergeDrafter, TheBudgetGoesToWhoeverWasRight) {
  const std::vector<CandidateTree> trees{tree_of({3, 4, 5}, {-1, 0, 1}),
                                         tree_of({3, 6, 7}, {-1, 0, 1})};
  MergeDrafter first = merge(2, trees);
  count(first, 4, 20);
  EXPECT_EQ(propose(first).tokens, (Text{3, 4}));
  MergeDrafter second = merge(2, trees);
  count(second, 6, 20);
  EXPECT_EQ(propose(second).tokens, (Text{3, 6}));
}

TEST(MergeDrafter, WhatWasLeftOutIsMeasuredToo) {
  MergeDrafter drafter = merge(2, {tree_of({3, 4}, {-1, 0}), tree_of({3, 6}, {-1, 0})});
  count(drafter, 4, 20);
  EXPECT_EQ(propose(drafter).tokens, (Text{3, 4}));
  count(drafter, 6, 60);  // 6 is not in the tree until it wins
  EXPECT_EQ(propose(drafter).tokens, (Text{3, 6}));
}

TEST(MergeDrafter, NodesThatAreTooSeldomRightForTheirRowsAreLeftOut) {
  MergeDrafter drafter =
      merge(kAll, {tree_of({3, 4, 5}, {-1, 0, 1}), tree_of({3}, {-1})}, linear(0.1));
  EXPECT_EQ(propose(drafter).size(), 3);
  count(drafter, 9, 300);
  EXPECT_EQ(propose(drafter).size(), 1);
  count(drafter, 4, 100);
  EXPECT_GE(propose(drafter).size(), 2);
}

TEST(MergeDrafter, ProposesLessWhereOthersFillThePass) {
  const std::vector<CandidateTree> alone{tree_of({3, 4, 5}, {-1, 0, 1})};
  const StepCost cost{{1, 1, 1, 1, 1, 1, 1, 1, 1.125}};  // rows are free up to eight
  MergeDrafter few = merge(kAll, alone, cost), many = merge(kAll, alone, cost);
  count(few, 9, 300);
  EXPECT_EQ(propose(few, 64, 2).size(), 3) << "seldom right, but for nothing";
  count(many, 9, 300);
  EXPECT_EQ(propose(many, 64, 8).size(), 1);
}

TEST(MergeDrafter, ProposesEverythingWhereTheDecoderChooses) {
  const std::vector<CandidateTree> alone{tree_of({3, 4, 5, 6}, {-1, 0, 1, 0})};
  MergeDrafter drafter = merge(3, alone, linear(1.1));
  EXPECT_EQ(propose(drafter).size(), 1) << "no row pays for itself";
  count(drafter, 4, 20);
  const DraftContext context{.tokens = kText,
                             .hidden = {},
                             .max_depth = 63,
                             .max_nodes = 64,
                             .slot = 0,
                             .num_sequences = 2,
                             .pruned_jointly = true};
  const CandidateTree tree = drafter.propose(context, Random(1));
  EXPECT_EQ(tree.tokens, (Text{3, 4, 5})) << "within the budget, the most probable ones";
  ASSERT_EQ(tree.accept_probs.size(), 3U);
  EXPECT_EQ(tree.accept_probs[0], 1);
  EXPECT_GT(tree.accept_probs[1], .6);
  EXPECT_LE(tree.accept_probs[2], tree.accept_probs[1]);
}

TEST(MergeDrafter, AFlatCurveAlwaysProposesAndASteepOneNever) {
  const std::vector<CandidateTree> alone{tree_of({3, 4, 5}, {-1, 0, 1})};
  MergeDrafter flat = merge(kAll, alone), steep = merge(kAll, alone, linear(1.1));
  for (int i = 0; i < 200; ++i) {
    const TokenId next = i < 100 ? 9 : 4;  // first it is always wrong, then always right
    EXPECT_EQ(propose(flat).size(), 3);
    EXPECT_EQ(propose(steep).size(), 1);
    count(flat, next, 1);
    count(steep, next, 1);
  }
}

TEST(MergeDrafter, AnAcceptedRunIsCountedAtEveryDepth) {
  MergeDrafter drafter = merge(3, {tree_of({3, 4, 5}, {-1, 0, 1}), tree_of({3, 4, 6}, {-1, 0, 1})});
  for (int i = 0; i < 30; ++i) {
    const CandidateTree tree = propose(drafter);
    drafter.observe(tree, {}, {{1}, 6});  // 4 is accepted, 6 follows
  }
  EXPECT_EQ(propose(drafter).tokens, (Text{3, 4, 6}));
}

/// Proposes one token and counts how often it is run.
class Counted : public Drafter {
 public:
  Counted(const TokenId& token, int& asked) : token_(token), asked_(asked) {}
  CandidateTree propose(const DraftContext& context, const Random&) override {
    ++asked_;
    return tree_of({context.tokens.back(), token_}, {-1, 0});
  }

 private:
  const TokenId& token_;
  int& asked_;
};

class RestingHeads : public testing::Test {
 protected:
  /// Heads that draft `draft_`, beside a drafter that proposes 4.
  MergeDrafter make(StepCost cost, const std::shared_ptr<FadingMean>& all_texts = nullptr) {
    std::vector<Proposer> proposers;
    proposers.push_back(
        {DrafterKind::Medusa, std::make_unique<Counted>(draft_, asked_), /*runs_heads=*/true});
    proposers.push_back(
        {DrafterKind::PromptLookup, std::make_unique<Fixed>(tree_of({3, 4}, {-1, 0}))});
    return {std::move(proposers), 64, std::move(cost), all_texts};
  }

  /// Steps that are followed by `next`. @returns how often the heads were run.
  int asked_in(MergeDrafter& drafter, TokenId next, int steps, int32_t sequences = 1) {
    asked_ = 0;
    for (int i = 0; i < steps; ++i) {
      const CandidateTree tree = propose(drafter, 64, sequences);
      std::vector<int32_t> path;
      for (int32_t node = 1; node < tree.size(); ++node)
        if (tree.tokens[static_cast<size_t>(node)] == next) path = {node};
      if (path.empty())
        drafter.observe(tree, {}, {{}, next});
      else
        drafter.observe(tree, {}, {path, 9});
    }
    return asked_;
  }

  TokenId draft_ = 6;
  int asked_ = 0;
};

TEST_F(RestingHeads, AreAskedWhileTheyAreRightAndOthersAreNot) {
  MergeDrafter drafter = make({{1, 1.05, 1.1}, 0.04});
  EXPECT_EQ(asked_in(drafter, 6, 50), 50);
}

TEST_F(RestingHeads, BackOffWhereOthersDraftTheSame) {
  draft_ = 4;
  MergeDrafter drafter = make({{1, 1.05, 1.1}, 0.04});
  EXPECT_LE(asked_in(drafter, 4, 40), 12) << "they add nothing";
  EXPECT_EQ(asked_in(drafter, 4, 10 * HeadsBackoff::kRunEvery), 10) << "now and then";
}

TEST_F(RestingHeads, BackOffWhereTheyAreWrongAndRunAgainOnceTheyAreRight) {
  MergeDrafter drafter = make({{1, 1.05, 1.1}, 0.04});
  asked_in(drafter, 5, 100);
  EXPECT_EQ(asked_in(drafter, 5, 10 * HeadsBackoff::kRunEvery), 10);
  asked_in(drafter, 6, 60 * HeadsBackoff::kRunEvery);
  EXPECT_EQ(asked_in(drafter, 6, 20), 20);
}

TEST_F(RestingHeads, AreNotTriedAnewInEachTextWhereOtherTextsSayTheyDoNotPay) {
  const StepCost cost{{1, 1.05, 1.1}, 0.04};
  const auto gain = heads_gain_of_all_texts();
  MergeDrafter first = make(cost, gain);
  EXPECT_GE(asked_in(first, 5, 7), MergeDrafter::kTrialRuns) << "nobody has tried them yet";
  asked_in(first, 5, 400);
  MergeDrafter second = make(cost, gain);
  EXPECT_EQ(asked_in(second, 5, HeadsBackoff::kRunEvery - 1), 0);
  asked_in(second, 6, 60 * HeadsBackoff::kRunEvery);
  EXPECT_EQ(asked_in(second, 6, 20), 20) << "but it finds out where they do";
}

TEST_F(RestingHeads, AreRunTheLessTheCostlierTheyAre) {
  // A pass of sixteen rows costs 4, so that sixteen questions to heads cost .4 of it.
  MergeDrafter drafter = make({{1, 1.2}, 0.1});
  asked_in(drafter, 5, 200, 16);
  EXPECT_EQ(asked_in(drafter, 5, 400, 16), 5) << "every 80th step: a two-hundredth of the time";
}

TEST_F(RestingHeads, TheirCostIsPartOfWhatAStepCosts) {
  // Two tokens in each step of 1.72 and .15 for the heads: at this throughput a row of .36 must
  // gain .383 tokens. Were it the throughput of 1.72 alone, .414, the drafter that is right in two
  // of five steps would be left out now and then.
  MergeDrafter drafter = make({{1, 1.36}, 0.15});
  for (int i = 0; i < 400; ++i) {
    const int32_t size = propose(drafter).size();
    EXPECT_TRUE(i < 200 || size == 3) << i << ": " << size;
    asked_in(drafter, i % 5 == 2 || i % 5 == 4 ? 4 : 6, 1);
  }
}

TEST_F(RestingHeads, AreAlwaysAskedWhereNobodyKnowsWhatItCosts) {
  MergeDrafter drafter = make({{1, 1.05, 1.1}, {}});
  EXPECT_EQ(asked_in(drafter, 5, 100), 100);
}

TEST(MergeDrafter, KeepsToTheStepsNodes) {
  MergeDrafter drafter = merge(kAll, {tree_of({3, 4, 5, 6}, {-1, 0, 1, 2}), tree_of({3}, {-1})});
  for (const int32_t nodes : {1, 2, 3}) EXPECT_EQ(propose(drafter, nodes).size(), nodes);
}

TEST(MergeConfig, NeedsTwoDifferentDrafters) {
  const auto error = [](const std::vector<DrafterKind>& drafters) {
    MergeConfig config;
    config.drafters = drafters;
    return fixtures::error_text([&] { config.validate(); });
  };
  EXPECT_EQ(error({DrafterKind::Medusa}),
            "merge: drafters names 1, expected at least two; add one or choose it as the drafter");
  EXPECT_EQ(error({DrafterKind::Medusa, DrafterKind::PromptLookup, DrafterKind::Medusa}),
            "merge: drafters names 'medusa' twice, expected different ones; remove one of the two");
  EXPECT_EQ(error({DrafterKind::Blockwise, DrafterKind::PromptLookup}), "(no error)");
  EXPECT_EQ(error({DrafterKind::Retrieval, DrafterKind::PromptLookup}), "(no error)");
}

}  // namespace
}  // namespace medusa
