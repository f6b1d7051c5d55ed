// What a drafter that chooses its tokens outright should have proposed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "infer/candidate_tree.h"

namespace medusa::fixtures {

/// All nodes may be accepted.
inline void expect_tree(const CandidateTree& tree, const std::vector<TokenId>& tokens,
                        const std::vector<int32_t>& parents) {
  EXPECT_EQ(tree.tokens, tokens);
  EXPECT_EQ(tree.parents, parents);
  EXPECT_EQ(tree.num_verify, tree.size());
  EXPECT_FALSE(tree.draft_probs.defined());
}

/// The nodes below the root whose tokens are these, from the top down, as far as there are such.
template <typename Tokens>
std::vector<int32_t> path_along(const CandidateTree& tree, const Tokens& tokens) {
  std::vector<int32_t> path;
  int32_t node = 0;
  for (const TokenId token : tokens) {
    node = find_child(tree, node, token);
    if (node < 0) break;
    path.push_back(node);
  }
  return path;
}

}  // namespace medusa::fixtures
