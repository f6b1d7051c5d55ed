#include "infer/drafters/worthwhile_nodes.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/random.h"

namespace medusa {
namespace {

using Nodes = std::vector<size_t>;

/// Each row beyond the first costs so much of a plain step.
StepCost straight_cost(double per_row) {
  StepCost cost;
  for (int n = 0; n < 64; ++n) cost.relative.push_back(1 + per_row * n);
  return cost;
}

const std::vector<double> kChances{1, 0.5, 0.3, 0.06, 0.2};

TEST(StepCost, GoesOnBeyondItsEndAsItEnded) {
  EXPECT_EQ(StepCost{}(64), 1);
  EXPECT_EQ(StepCost{{1}}(5), 1);
  const StepCost cost{{1, 1.5, 3}};
  EXPECT_EQ(cost(2), 1.5);
  EXPECT_EQ(cost(3), 3);
  EXPECT_EQ(cost(5), 6);
}

TEST(WorthwhileNodes, AFlatCurveTakesEverythingAndASteepOneNothing) {
  EXPECT_EQ(worthwhile_nodes(kChances, {}, 3, 64), (Nodes{0, 1, 2, 3, 4}));
  EXPECT_EQ(worthwhile_nodes(kChances, straight_cost(0), 3, 64), (Nodes{0, 1, 2, 3, 4}));
  EXPECT_EQ(worthwhile_nodes(kChances, straight_cost(1), 1, 64), (Nodes{0}));
}

TEST(WorthwhileNodes, ANodeIsTakenWhereItGainsMoreThanItsRowCosts) {
  EXPECT_EQ(worthwhile_nodes(kChances, straight_cost(0.1), 1, 64), (Nodes{0, 1, 2, 4}));
  EXPECT_EQ(worthwhile_nodes(kChances, straight_cost(0.25), 1, 64), (Nodes{0, 1, 2}));
  // Twice as fast as plain decoding, time is worth twice as much.
  EXPECT_EQ(worthwhile_nodes(kChances, straight_cost(0.11), 2, 64), (Nodes{0, 1, 2}));
}

TEST(WorthwhileNodes, AStepInTheCurveIsCrossedWhenEnoughLiesBehindIt) {
  const StepCost cost{{1, 1.6, 1.6, 1.6, 1.6}};
  EXPECT_EQ(worthwhile_nodes(kChances, cost, 1, 64), (Nodes{0, 1, 2, 3, 4}));
  EXPECT_EQ(worthwhile_nodes(std::vector<double>{1, 0.3, 0.2}, cost, 1, 64), (Nodes{0}));
}

TEST(WorthwhileNodes, KeepsToTheBudget) {
  EXPECT_EQ(worthwhile_nodes(kChances, {}, 1, 3), (Nodes{0, 1, 2}));
  EXPECT_EQ(worthwhile_nodes(kChances, {}, 1, 1), (Nodes{0}));
}

/// The best gain of all sets of nodes that are trees.
double best_gain(const std::vector<double>& chances, const std::vector<int>& parents,
                 const StepCost& cost, double pace) {
  double best = -1e9;
  for (uint32_t set = 1; set < 1U << chances.size(); set += 2) {  // the root is in all of them
    double tokens = 0;
    bool tree = true;
    for (size_t i = 0; i < chances.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      tokens += chances[i];
      tree = tree && (i == 0 || (set >> parents[i] & 1) != 0);
    }
    if (tree) best = std::max(best, tokens - pace * cost(std::popcount(set)));
  }
  return best;
}

TEST(WorthwhileNodes, AreAsGoodAsTryingAllTrees) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed);
    std::vector<double> chances{1};
    std::vector<int> parents{-1};
    StepCost cost{{1}};
    for (int i = 1; i < 9; ++i) {
      const auto at = [&](uint64_t k) { return random.uniform(RandomUse::Init, i, k); };
      parents.push_back(static_cast<int>(at(0) * i));
      chances.push_back(chances[static_cast<size_t>(parents.back())] * at(1));
      cost.relative.push_back(cost.relative.back() + 0.3 * at(2) * at(3));
    }
    const double pace = 1 + random.uniform(RandomUse::Init, 99);
    double tokens = 0;
    const Nodes nodes = worthwhile_nodes(chances, cost, pace, 64);
    for (const size_t node : nodes) {
      tokens += chances[node];
      const int parent = parents[node];
      EXPECT_TRUE(parent < 0 || std::count(nodes.begin(), nodes.end(), parent) == 1) << seed;
    }
    EXPECT_NEAR(tokens - pace * cost(static_cast<int32_t>(nodes.size())),
                best_gain(chances, parents, cost, pace), 1e-9)
        << seed;
  }
}

TEST(Pace, IsOneAtFirstAndNeverLess) {
  Pace pace;
  EXPECT_EQ(pace.tokens_per_cost(), 1);
  for (int i = 0; i < 300; ++i) pace.count(3, 1.5);
  EXPECT_GT(pace.tokens_per_cost(), 1.7);
  for (int i = 0; i < 300; ++i) pace.count(1, 2);
  EXPECT_EQ(pace.tokens_per_cost(), 1);
}

}  // namespace
}  // namespace medusa
