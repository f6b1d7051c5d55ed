#include <gtest/gtest.h>

#include "infer/drafters/research/lookahead_drafter.h"

namespace medusa {
namespace {

using Text = std::vector<TokenId>;
using Tails = std::deque<Text>;

void add(NgramPool& pool, const Text& ngram) { pool.add(ngram); }

TEST(NgramPool, KeepsNgramsByTheirFirstToken) {
  NgramPool pool(4);
  add(pool, {1, 2, 3});
  add(pool, {2, 2, 3});
  add(pool, {1, 5, 6});
  EXPECT_EQ(pool.after(1), (Tails{{2, 3}, {5, 6}}));
  EXPECT_EQ(pool.after(2), (Tails{{2, 3}}));
  EXPECT_TRUE(pool.after(3).empty());
}

TEST(NgramPool, TheLeastRecentlyUsedIsForgotten) {
  NgramPool pool(2);
  add(pool, {1, 2});
  add(pool, {1, 3});
  add(pool, {1, 2});  // used again: 3 is the oldest now
  EXPECT_EQ(pool.after(1), (Tails{{3}, {2}}));
  add(pool, {1, 4});
  EXPECT_EQ(pool.after(1), (Tails{{2}, {4}}));
  add(pool, {9, 4});
  EXPECT_EQ(pool.after(1).size(), 2U) << "of another token";
}

TEST(NgramPool, AnNgramHasTwoTokensAtLeast) {
  NgramPool pool(2);
  EXPECT_THROW(add(pool, {1}), std::logic_error);
}

}  // namespace
}  // namespace medusa
