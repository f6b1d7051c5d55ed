#include "infer/drafters/tree_pruning.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/random.h"

namespace medusa {
namespace {

using Nodes = std::vector<size_t>;

/// Each row beyond the first costs so much of a plain step.
StepCost linear_cost(double per_row) {
  StepCost cost;
  for (int n = 0; n < 64; ++n) cost.relative.push_back(1 + per_row * n);
  return cost;
}

const std::vector<double> kAcceptProbs{1, 0.5, 0.3, 0.06, 0.2};

TEST(StepCost, GoesOnBeyondItsEndAsItEnded) {
  EXPECT_EQ(StepCost{}(64), 1);
  EXPECT_EQ(StepCost{{1}}(5), 1);
  const StepCost cost{{1, 1.5, 3}};
  EXPECT_EQ(cost(2), 1.5);
  EXPECT_EQ(cost(3), 3);
  EXPECT_EQ(cost(5), 6);
}

TEST(TreePruning, AFlatCurveTakesEverythingAndASteepOneNothing) {
  EXPECT_EQ(prune_tree(kAcceptProbs, {}, 3, 64), (Nodes{0, 1, 2, 3, 4}));
  EXPECT_EQ(prune_tree(kAcceptProbs, linear_cost(0), 3, 64), (Nodes{0, 1, 2, 3, 4}));
  EXPECT_EQ(prune_tree(kAcceptProbs, linear_cost(1), 1, 64), (Nodes{0}));
}

TEST(TreePruning, ANodeIsTakenWhereItGainsMoreThanItsRowCosts) {
  EXPECT_EQ(prune_tree(kAcceptProbs, linear_cost(0.1), 1, 64), (Nodes{0, 1, 2, 4}));
  EXPECT_EQ(prune_tree(kAcceptProbs, linear_cost(0.25), 1, 64), (Nodes{0, 1, 2}));
  // Twice as fast as plain decoding, time is worth twice as much.
  EXPECT_EQ(prune_tree(kAcceptProbs, linear_cost(0.11), 2, 64), (Nodes{0, 1, 2}));
}

TEST(TreePruning, AStepInTheCurveIsCrossedWhenEnoughLiesBehindIt) {
  const StepCost cost{{1, 1.6, 1.6, 1.6, 1.6}};
  EXPECT_EQ(prune_tree(kAcceptProbs, cost, 1, 64), (Nodes{0, 1, 2, 3, 4}));
  EXPECT_EQ(prune_tree(std::vector<double>{1, 0.3, 0.2}, cost, 1, 64), (Nodes{0}));
}

TEST(TreePruning, KeepsToTheBudget) {
  EXPECT_EQ(prune_tree(kAcceptProbs, {}, 1, 3), (Nodes{0, 1, 2}));
  EXPECT_EQ(prune_tree(kAcceptProbs, {}, 1, 1), (Nodes{0}));
}

/// The best gain of all sets of nodes that are trees.
double best_gain(const std::vector<double>& accept_probs, const std::vector<int>& parents,
                 const StepCost& cost, double throughput) {
  double best = -1e9;
  for (uint32_t set = 1; set < 1U << accept_probs.size(); set += 2) {  // the root is in all of them
    double tokens = 0;
    bool tree = true;
    for (size_t i = 0; i < accept_probs.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      tokens += accept_probs[i];
      tree = tree && (i == 0 || (set >> parents[i] & 1) != 0);
    }
    if (tree) best = std::max(best, tokens - throughput * cost(std::popcount(set)));
  }
  return best;
}

TEST(TreePruning, AreAsGoodAsTryingAllTrees) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed);
    std::vector<double> accept_probs{1};
    std::vector<int> parents{-1};
    StepCost cost{{1}};
    for (int i = 1; i < 9; ++i) {
      const auto at = [&](uint64_t k) { return random.uniform(RandomUse::Init, i, k); };
      parents.push_back(static_cast<int>(at(0) * i));
      accept_probs.push_back(accept_probs[static_cast<size_t>(parents.back())] * at(1));
      cost.relative.push_back(cost.relative.back() + 0.3 * at(2) * at(3));
    }
    const double throughput = 1 + random.uniform(RandomUse::Init, 99);
    double tokens = 0;
    const Nodes nodes = prune_tree(accept_probs, cost, throughput, 64);
    for (const size_t node : nodes) {
      tokens += accept_probs[node];
      const int parent = parents[node];
      EXPECT_TRUE(parent < 0 || std::count(nodes.begin(), nodes.end(), parent) == 1) << seed;
    }
    EXPECT_NEAR(tokens - throughput * cost(static_cast<int32_t>(nodes.size())),
                best_gain(accept_probs, parents, cost, throughput), 1e-9)
        << seed;
  }
}

TEST(Throughput, IsOneAtFirstAndNeverLess) {
  Throughput throughput;
  EXPECT_EQ(throughput.tokens_per_cost(), 1);
  for (int i = 0; i < 300; ++i) throughput.count(3, 1.5);
  EXPECT_GT(throughput.tokens_per_cost(), 1.7);
  for (int i = 0; i < 300; ++i) throughput.count(1, 2);
  EXPECT_EQ(throughput.tokens_per_cost(), 1);
}

}  // namespace
}  // namespace medusa
