// One step's proposal: a tree of tokens that the target checks in one pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"
#include "infer/drafter_kind.h"

namespace medusa {

/// A token tree whose root is the last emitted token.
struct CandidateTree {
  std::vector<TokenId> tokens;   // [N]
  std::vector<int32_t> parents;  // [N], parents[0] == -1, parents[i] < i
  int32_t num_verify = 0;  // nodes [0, num_verify) may be accepted; the rest only feed the drafter
  at::Tensor draft_probs;  // [N, V] float32, row i: what token i was drawn from given its earlier
                           // siblings; undefined: every token was chosen outright (a point mass)
  std::vector<float> confidences{};    // [N] how probable it is that node i is right if its parent
                                       // is, as the drafter sees it; empty: it does not say
  std::vector<double> accept_probs{};  // [N] how probable it is that node i is accepted, no child's
                                       // above its parent's: the decoder may leave nodes out, by
                                       // what their rows cost; empty: it runs the tree as it is
  std::vector<DrafterKind> drafters{};  // [N] who proposed node i, where several drafters share the
                                        // tree (the root: None); empty: one drafter alone

  int32_t size() const { return static_cast<int32_t>(tokens.size()); }

  /// Who proposed a node; `one`, the drafter alone, where the tree does not say.
  DrafterKind drafter_of(int32_t node, DrafterKind one) const {
    return drafters.empty() ? one : drafters[static_cast<size_t>(node)];
  }
};

inline CandidateTree root_only(TokenId root) { return {{root}, {-1}, 1, {}}; }

/// The child of node that holds token, among the nodes that may be accepted; -1: none.
inline int32_t find_child(const CandidateTree& tree, int32_t node, TokenId token) {
  for (int32_t i = node + 1; i < tree.num_verify; ++i)
    if (tree.parents[static_cast<size_t>(i)] == node &&
        tree.tokens[static_cast<size_t>(i)] == token)
      return i;
  return -1;
}

/// Candidates on the longest path that may be accepted; 0: the root stands alone.
int64_t depth_of(const CandidateTree& tree);

/// The nodes of a tree that are listed, ascending and each with its parent. All of the tree's nodes
/// may be accepted, and were chosen outright.
CandidateTree part_of(const CandidateTree& tree, std::span<const size_t> nodes);

/// Lists what a step emitted.
inline std::vector<TokenId> emitted_tokens(const CandidateTree& tree,
                                           const std::vector<int32_t>& path, TokenId next) {
  std::vector<TokenId> tokens;
  for (const int32_t node : path) tokens.push_back(tree.tokens[static_cast<size_t>(node)]);
  tokens.push_back(next);
  return tokens;
}

}  // namespace medusa
