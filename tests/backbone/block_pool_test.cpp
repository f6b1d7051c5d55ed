#include "backbone/block_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace medusa {
namespace {

const std::vector<TokenId> kTokens{1, 2, 3}, kOthers{1, 2, 4};

TEST(BlockPool, ANameStandsForAllTokensUpToTheEndOfABlock) {
  const BlockName first = block_name("", kTokens), other = block_name("", kOthers);
  EXPECT_EQ(first, block_name("", kTokens));
  const std::set<BlockName> all{first, other, block_name(first, kTokens),
                                block_name(other, kTokens), block_name(first, kOthers)};
  EXPECT_EQ(all.size(), 5U);
}

TEST(BlockPool, TheLowestFreeBlockIsTakenFirst) {
  BlockPool pool(4);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 2);
  pool.release(1);
  pool.release(0);
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.num_used(), 4);
  EXPECT_THROW(pool.take(), std::logic_error);
}

TEST(BlockPool, ANamedBlockIsFoundByAllAndKeptAfterItsLastUser) {
  BlockPool pool(2);
  const int32_t block = pool.take();
  pool.name(block, "a");
  EXPECT_EQ(pool.take_named("b"), std::nullopt);
  EXPECT_EQ(pool.take_named("a"), block);
  EXPECT_EQ(pool.num_users(block), 2);
  EXPECT_EQ(pool.num_used(), 1);
  pool.release(block);
  pool.release(block);
  EXPECT_THROW(pool.release(block), std::logic_error);
  EXPECT_EQ(pool.num_used(), 0);
  EXPECT_EQ(pool.num_kept(), 1);
  EXPECT_EQ(pool.take_named("a"), block);
  EXPECT_EQ(pool.num_kept(), 0);
  EXPECT_EQ(pool.num_users(block), 1);
}

TEST(BlockPool, WhatWasReleasedFirstMakesRoomFirst) {
  BlockPool pool(3);
  for (const char* name : {"a", "b", "c"}) pool.name(pool.take(), name);
  for (const int32_t block : {1, 0, 2}) pool.release(block);
  EXPECT_EQ(pool.take_named("b"), 1);
  pool.release(1);  // used again: now it is the last one
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take_named("a"), std::nullopt);
  EXPECT_EQ(pool.take(), 2);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take_named("b"), std::nullopt);
}

TEST(BlockPool, ABlockThatIsWrittenCannotBeFound) {
  BlockPool pool(2);
  const int32_t block = pool.take();
  pool.name(block, "a");
  pool.forget(block);
  EXPECT_EQ(pool.take_named("a"), std::nullopt);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, OfTwoBlocksWithOneContentTheFirstIsFound) {
  BlockPool pool(2);
  pool.name(pool.take(), "a");
  const int32_t copy = pool.take();
  pool.name(copy, "a");
  pool.release(copy);
  EXPECT_EQ(pool.num_free(), 1);
  pool.forget(0);
  EXPECT_EQ(pool.take_named("a"), std::nullopt);
}

TEST(BlockPool, KeptBlocksCanBeFreedAtOnce) {
  BlockPool pool(3);
  for (const char* name : {"a", "b", "c"}) pool.name(pool.take(), name);
  pool.release(0);
  pool.release(1);
  pool.free_kept();
  EXPECT_EQ(pool.num_free(), 2);
  EXPECT_EQ(pool.take_named("a"), std::nullopt);
  EXPECT_EQ(pool.take_named("c"), 2) << "it is used";
}

}  // namespace
}  // namespace medusa
