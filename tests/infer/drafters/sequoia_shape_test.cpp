#include "infer/drafters/research/sequoia_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "base/random.h"

namespace medusa {
namespace {

/// Rates that were learnt from made-up steps.
PositionalAcceptance learnt(uint64_t seed, bool by_depth) {
  PositionalAcceptance acceptance(by_depth);
  const Random random(seed);
  for (int64_t i = 0; i < 60; ++i) {
    const auto depth = static_cast<int32_t>(1 + i % 3);
    const double u = random.uniform(RandomUse::Init, i) * (1 + depth * 0.3);
    acceptance.count(depth, 4, u < 0.5 ? 0 : u < 0.75 ? 1 : u < 0.85 ? 2 : u < 0.9 ? 3 : -1);
  }
  return acceptance;
}

/// The most expected tokens of n nodes below a root at this depth, by trying all ways to share.
double slow_best(const PositionalAcceptance& acceptance, int32_t n, int32_t depth,
                 int32_t max_depth, int32_t max_children) {
  if (depth >= max_depth) return 0;
  std::function<double(int32_t, int32_t)> siblings = [&](int32_t left, int32_t k) -> double {
    double best = 0;
    if (k == max_children) return 0;
    for (int32_t own = 1; own <= left; ++own)
      best = std::max(
          best, acceptance.rate(depth + 1, k) *
                        (1 + slow_best(acceptance, own - 1, depth + 1, max_depth, max_children)) +
                    siblings(left - own, k + 1));
    return best;
  };
  return siblings(n, 0);
}

/// The product of rates on each node's path, summed.
double value_of(const SequoiaShape& shape, const PositionalAcceptance& acceptance) {
  struct Node {
    double accept_prob;
    int32_t depth;
  };
  std::vector<Node> nodes{{1, 0}};
  double sum = 1;
  for (size_t i = 0; i < shape.children.size(); ++i)
    for (int32_t k = 0; k < shape.children[i]; ++k) {
      const double accept_prob = nodes[i].accept_prob * acceptance.rate(nodes[i].depth + 1, k);
      nodes.push_back({accept_prob, nodes[i].depth + 1});
      sum += accept_prob;
    }
  EXPECT_EQ(nodes.size(), shape.children.size());
  return sum;
}

TEST(SequoiaShape, IsTheBestOfAllSharings) {
  for (uint64_t seed = 0; seed < 6; ++seed)
    for (const bool by_depth : {false, true}) {
      const PositionalAcceptance acceptance = learnt(seed, by_depth);
      for (const int32_t nodes : {1, 2, 5, 8})
        for (const int32_t depth : {1, 2, 4}) {
          const SequoiaShape shape = best_shape(acceptance, nodes, depth, 3);
          const double slow = 1 + slow_best(acceptance, nodes - 1, 0, depth, 3);
          EXPECT_NEAR(shape.expected, slow, 1e-12) << nodes << " " << depth;
          EXPECT_NEAR(value_of(shape, acceptance), slow, 1e-12);
          EXPECT_LE(shape.children.size(), static_cast<size_t>(nodes));
        }
    }
}

/// Rates fall from sibling to sibling, so the most probable nodes one by one are the best tree too.
TEST(SequoiaShape, EqualsTakingTheMostProbableNodes) {
  const PositionalAcceptance acceptance = learnt(3, true);
  struct Node {
    double accept_prob;
    int32_t depth, sibling;
    double parent;
    bool operator<(const Node& other) const { return accept_prob < other.accept_prob; }
  };
  std::priority_queue<Node> open;
  open.push({acceptance.rate(1, 0), 1, 0, 1});
  double sum = 1;
  for (int i = 0; i < 39; ++i) {
    const Node node = open.top();
    open.pop();
    sum += node.accept_prob;
    if (node.sibling + 1 < 8)
      open.push({node.parent * acceptance.rate(node.depth, node.sibling + 1), node.depth,
                 node.sibling + 1, node.parent});
    if (node.depth < 6)
      open.push({node.accept_prob * acceptance.rate(node.depth + 1, 0), node.depth + 1, 0,
                 node.accept_prob});
  }
  EXPECT_NEAR(best_shape(acceptance, 40, 6, 8).expected, sum, 1e-12);
}

TEST(SequoiaShape, LearnsFromWhatWasRight) {
  PositionalAcceptance always(false);
  for (int i = 0; i < 500; ++i) always.count(1, 2, 0);
  const SequoiaShape chain = best_shape(always, 6, 10, 4);
  EXPECT_EQ(chain.children, (std::vector<int32_t>{1, 1, 1, 1, 1, 0}));
  PositionalAcceptance never(false);
  for (int i = 0; i < 500; ++i) never.count(1, 4, -1);
  EXPECT_LT(best_shape(never, 6, 10, 4).expected, 1.1);
}

}  // namespace
}  // namespace medusa
