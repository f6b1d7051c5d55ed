// Grows a candidate tree node by node, within what a step allows and without duplicate siblings.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "infer/drafter.h"

namespace medusa {

/// Every node may be accepted. Siblings hold distinct tokens: paths with the same beginning share
/// its nodes.
class TreeBuilder {
 public:
  explicit TreeBuilder(const DraftContext& context)
      : tree_(root_only(context.tokens.back())),
        max_depth_(context.max_depth),
        max_nodes_(context.max_nodes) {}

  /// Goes on with a tree that keeps to the limits and whose nodes may all be accepted.
  TreeBuilder(const DraftContext& context, CandidateTree tree)
      : tree_(std::move(tree)), max_depth_(context.max_depth), max_nodes_(context.max_nodes) {
    for (size_t i = 1; i < tree_.parents.size(); ++i)
      depths_.push_back(depth(tree_.parents[i]) + 1);
  }

  /// The child of node that holds token; -1: there is none.
  int32_t find(int32_t node, TokenId token) const { return find_child(tree_, node, token); }

  /// The child of node that holds token, made if it is not there; -1: it would be too deep or one
  /// node too many.
  int32_t child(int32_t node, TokenId token) {
    const int32_t found = find(node, token);
    if (found >= 0 || full() || depth(node) >= max_depth_) return found;
    tree_.tokens.push_back(token);
    tree_.parents.push_back(node);
    depths_.push_back(depth(node) + 1);
    return tree_.num_verify++;
  }

  /// Says how probable it is that the node is right if its parent is: of every node, or of none.
  void set_confidence(int32_t node, double confidence) {
    tree_.confidences.resize(tree_.tokens.size(), 1.0F);
    tree_.confidences[static_cast<size_t>(node)] = static_cast<float>(confidence);
  }

  /// Adds the path of these tokens below the root, as far as it fits.
  template <typename Tokens>
  void add_path(const Tokens& tokens) {
    int32_t node = 0;
    for (const TokenId token : tokens) {
      node = child(node, token);
      if (node < 0) return;
    }
  }

  int32_t depth(int32_t node) const { return depths_[static_cast<size_t>(node)]; }
  int32_t size() const { return tree_.size(); }
  bool full() const { return size() >= max_nodes_; }
  CandidateTree take() && { return std::move(tree_); }

 private:
  CandidateTree tree_;
  std::vector<int32_t> depths_{0};
  int32_t max_depth_;
  int32_t max_nodes_;
};

}  // namespace medusa
