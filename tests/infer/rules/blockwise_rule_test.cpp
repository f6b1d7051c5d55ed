#include "infer/rules/blockwise_rule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "infer/rules/greedy_rule.h"

namespace medusa {
namespace {

using Path = std::vector<int32_t>;

/// The same logits after every node: 2 is best, then 0, 3, 1.
at::Tensor rows(int64_t count) {
  return at::tensor({3.0F, 0.0F, 4.0F, 1.0F}).unsqueeze(0).repeat({count, 1});
}

Acceptance accept(const BlockwiseRuleConfig& config, const CandidateTree& tree) {
  return BlockwiseRule(config).accept(tree, rows(tree.size()), 5, Random(1));
}

CandidateTree chain_of(const std::vector<TokenId>& tokens) {
  CandidateTree tree = root_only(9);
  for (const TokenId token : tokens) {
    tree.tokens.push_back(token);
    tree.parents.push_back(tree.size() - 2);
  }
  tree.num_verify = tree.size();
  return tree;
}

TEST(BlockwiseRule, ItsDefaultsAreTheGreedyRule) {
  EXPECT_TRUE(BlockwiseRule({}).lossless());
  for (const std::vector<TokenId>& block :
       {std::vector<TokenId>{}, {2}, {2, 2, 2}, {2, 0, 2}, {1, 2}}) {
    const CandidateTree tree = chain_of(block);
    const Acceptance greedy = GreedyRule().accept(tree, rows(tree.size()), 5, Random(1));
    EXPECT_EQ(accept({}, tree).path, greedy.path);
    EXPECT_EQ(accept({}, tree).next, greedy.next);
  }
}

TEST(BlockwiseRule, ADraftStandsAmongTheTargetsBestFew) {
  const CandidateTree tree = chain_of({2, 0, 0, 3, 1});
  EXPECT_EQ(accept({.top_k = 1}, tree).path, (Path{1}));
  EXPECT_EQ(accept({.top_k = 2}, tree).path, (Path{1, 2, 3}));
  EXPECT_EQ(accept({.top_k = 3}, tree).path, (Path{1, 2, 3, 4}));
  EXPECT_EQ(accept({.top_k = 4}, tree).path, (Path{1, 2, 3, 4, 5}));
  EXPECT_EQ(accept({.top_k = 2}, tree).next, 2) << "the target's own token is its best";
  EXPECT_FALSE(BlockwiseRule({.top_k = 2}).lossless());
}

TEST(BlockwiseRule, OfEqualLogitsTheLowerIdIsBetter) {
  const CandidateTree tree = chain_of({1});
  const at::Tensor equal = at::zeros({2, 4});
  EXPECT_TRUE(BlockwiseRule({.top_k = 1}).accept(tree, equal, 5, Random(1)).path.empty());
  EXPECT_EQ(BlockwiseRule({.top_k = 2}).accept(tree, equal, 5, Random(1)).path, (Path{1}));
}

TEST(BlockwiseRule, AStepEmitsAtLeastTheMinimumBlock) {
  EXPECT_EQ(accept({.min_block = 1}, chain_of({1, 1, 1})).path, Path{});
  EXPECT_EQ(accept({.min_block = 2}, chain_of({1, 1, 1})).path, (Path{1}));
  EXPECT_EQ(accept({.min_block = 3}, chain_of({1, 1, 1})).path, (Path{1, 2}));
  EXPECT_EQ(accept({.min_block = 3}, chain_of({1, 1, 2, 2, 1})).path, (Path{1, 2, 3, 4}));
  EXPECT_EQ(accept({.min_block = 9}, chain_of({1, 1})).path, (Path{1, 2}))
      << "no more than drafted";
  EXPECT_FALSE(BlockwiseRule({.min_block = 2}).lossless());
}

TEST(BlockwiseRule, OfSeveralSiblingsTheMostProbableIsTakenAndDraftRowsAreNot) {
  CandidateTree tree{{9, 3, 0, 2}, {-1, 0, 0, 0}, 3, {}};
  EXPECT_EQ(accept({.top_k = 4}, tree).path, (Path{2}));
  tree.num_verify = 4;
  EXPECT_EQ(accept({.top_k = 4}, tree).path, (Path{3}));
}

}  // namespace
}  // namespace medusa
