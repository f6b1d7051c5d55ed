// A step's tree of its most probable paths, grown depth by depth: EAGLE-2's re-ranking
// (arXiv:2406.16858 §4.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infer/candidate_tree.h"

namespace medusa {

/// A path's probability is the product of its nodes'. No path is more probable than its prefix, so
/// what lies below a path that is not among the best so far need not be looked at.
class BestPaths {
 public:
  /// A node and the path to it.
  struct Node {
    TokenId token = 0;
    int32_t parent = -1;  // index among the nodes
    int32_t depth = 0;
    double log_path_prob = 0;
    int32_t place = -1;  // where who grows the tree keeps what it knows of the node; not looked at
  };

  /// @param most  nodes, the root included; at least 1.
  BestPaths(TokenId root, int32_t most) : most_(static_cast<size_t>(most)) {
    nodes_.push_back({.token = root});
  }

  /// The root, then shorter paths first, then in the order in which they were added. Places change
  /// in keep_best() alone.
  std::span<Node> nodes() { return nodes_; }

  void add(int32_t parent, TokenId token, double log_prob) {
    const Node& above = nodes_[static_cast<size_t>(parent)];
    nodes_.push_back({token, parent, above.depth + 1, above.log_path_prob + log_prob});
  }

  /// The most probable nodes of a depth, at most so many, in their order among the nodes.
  std::vector<int32_t> best_of(int32_t depth, size_t count) const;

  /// Drops all but the most probable nodes. They bring their parents along, which are no less
  /// probable and come before them. Of equal ones the earlier stays.
  void keep_best();

  /// The nodes as a proposal, with each node's confidence; all may be accepted.
  CandidateTree tree() const;

 private:
  void sort_best(std::vector<int32_t>& order, size_t count) const;

  size_t most_;
  std::vector<Node> nodes_;
};

}  // namespace medusa
