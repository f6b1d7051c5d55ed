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
  std::vector<std::unique_ptr<Drafter>> drafters;
  for (const CandidateTree& tree : trees) drafters.push_back(std::make_unique<Fixed>(tree));
  return {std::move(drafters), budget, std::move(cost)};
}

/// Each row beyond the first costs so much of a plain step.
StepCost straight(double per_row) { return {{1, 1 + per_row}}; }

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
      merge(kAll, {tree_of({3, 4, 5}, {-1, 0, 1}), tree_of({3}, {-1})}, straight(0.1));
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

TEST(MergeDrafter, AFlatCurveAlwaysProposesAndASteepOneNever) {
  const std::vector<CandidateTree> alone{tree_of({3, 4, 5}, {-1, 0, 1})};
  MergeDrafter flat = merge(kAll, alone), steep = merge(kAll, alone, straight(1.1));
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
