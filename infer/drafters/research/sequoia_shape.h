// The best token tree for measured acceptance: which node gets how many children.
// Paper: Sequoia (arXiv:2402.12374) §4.1 (dynamic program over tree sizes). No LibTorch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace medusa {

/// Positional acceptance: how often the k-th sibling is the right one when their parent was right.
/// By depth too where that matters: Medusa's heads get worse with depth, a draft model hardly.
///
/// Thread safety: none.
class PositionalAcceptance {
 public:
  /// @param by_depth  false: all depths count together, as in the paper.
  explicit PositionalAcceptance(bool by_depth) : by_depth_(by_depth) {}

  /// P(k-th sibling is right | parent is), siblings from 0, depth of the siblings from 1. Before
  /// much was counted near 0.5 · 0.4^k. Never more than that of the sibling before.
  double rate(int32_t depth, int32_t sibling) const;

  /// Counts what came of one set of siblings whose parent was right.
  /// @param siblings  how many there were
  /// @param right     which of them; -1: none
  void count(int32_t depth, int32_t siblings, int32_t right);

 private:
  struct Counts {
    std::vector<double> right, tried;  // by sibling
  };
  const Counts* counts_of(int32_t depth) const;

  bool by_depth_;
  std::vector<Counts> counts_;  // by depth - 1
};

/// A tree as its nodes' child counts, level by level.
struct SequoiaShape {
  std::vector<int32_t> children;  // [N] in breadth-first order, the root first
  double expected = 0;            // tokens of a step: 1 + what the tree adds
};

/// The tree of at most num_nodes nodes (the root included) and max_depth levels below the root that
/// adds most expected tokens: F(n, d) is the best subtree of n nodes whose root is at depth d, and
/// siblings share its nodes out one after the other. O(D · B · N^2).
/// @param max_children  B
SequoiaShape best_shape(const PositionalAcceptance& acceptance, int32_t num_nodes,
                        int32_t max_depth, int32_t max_children);

}  // namespace medusa
