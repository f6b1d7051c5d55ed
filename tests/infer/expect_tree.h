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

}  // namespace medusa::fixtures
