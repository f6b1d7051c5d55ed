#include "backbone/kv_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "backbone/cpu/layout/kv_tiles.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

constexpr int32_t kSlots = 3;
constexpr int64_t kCapacity = 96;

/// How a cache's rows lie.
struct Lying {
  const char* name;
  KvLayout layout;
  bool whole_slots;
};

KvCache make_cache(const Lying& lying, int32_t slots = kSlots, int64_t capacity = kCapacity,
                   std::optional<int64_t> max_bytes = std::nullopt) {
  return {tiny_config(),
          slots,
          capacity,
          lying.layout == KvLayout::Rows ? at::kFloat : at::kBFloat16,
          at::kCPU,
          lying.layout,
          {lying.whole_slots, max_bytes}};
}

constexpr Lying kRows{"Rows", KvLayout::Rows, false}, kTiles{"Tiles", KvLayout::Tiles, false},
    kWhole{"WholeSlots", KvLayout::Rows, true};

std::vector<int32_t> first_rows(int64_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Calls use(which layer, side and head, row, dimension, number) for every number of a slot's first
/// rows.
template <typename Use>
void for_each_element(KvCache& cache, int32_t slot, int64_t rows, const Use& use) {
  const ModelConfig config = tiny_config();
  const int64_t size = config.head_size;
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    for (const KvSide side : {KvSide::Keys, KvSide::Values}) {
      const bool is_key = side == KvSide::Keys;
      if (cache.layout() == KvLayout::Rows) {
        at::Tensor all = cache.read(side, layer, slot, rows).contiguous();  // [G, rows, D]
        auto* data = static_cast<float*>(all.data_ptr());
        for (int64_t i = 0; i < all.numel(); ++i) {
          const int64_t head = i / (rows * size), row = i / size % rows;
          use(((layer * 2 + (is_key ? 0 : 1)) * config.num_kv_heads + head), row, i % size,
              data[i]);
        }
        cache.write(side, layer, slot, 0, all);
        continue;
      }
      const KvBlocks::Strides stride = cache.strides();
      for (int64_t head = 0; head < config.num_kv_heads; ++head)
        for (int64_t row = 0; row < rows; ++row) {
          uint16_t* block = cache.tiles(slot)[static_cast<size_t>(row / kKvBlockRows)] +
                            layer * stride.layer + head * stride.head +
                            (is_key ? 0 : stride.values);
          for (int64_t dim = 0; dim < size; ++dim) {
            const int64_t in_block = row % kKvBlockRows;
            const int64_t at = is_key ? tile_key_index(in_block, dim, size)
                                      : tile_value_index(in_block, dim, size);
            use(((layer * 2 + (is_key ? 0 : 1)) * config.num_kv_heads + head), row, dim, block[at]);
          }
        }
    }
}

/// A number that tells rows apart; it fits into 16 bits and into a float.
int64_t tag(int64_t text, int64_t head, int64_t row, int64_t dim) {
  return (text * 7919 + head * 4096 + row * 32 + dim) % 65521;
}

void fill(KvCache& cache, int32_t slot, int64_t rows, int64_t text) {
  cache.make_room(slot, rows);
  for_each_element(cache, slot, rows, [&](int64_t head, int64_t row, int64_t dim, auto& number) {
    number = static_cast<std::remove_reference_t<decltype(number)>>(tag(text, head, row, dim));
  });
}

/// Elements of a slot that are not those of the row of the text that should lie there.
template <typename RowOf>
int64_t count_wrong(KvCache& cache, int32_t slot, int64_t rows, int64_t text, const RowOf& row_of) {
  int64_t wrong = 0;
  for_each_element(cache, slot, rows, [&](int64_t head, int64_t row, int64_t dim, auto& number) {
    const auto expected =
        static_cast<std::remove_reference_t<decltype(number)>>(tag(text, head, row_of(row), dim));
    wrong += number != expected ? 1 : 0;
  });
  return wrong;
}

int64_t itself(int64_t row) { return row; }

class KvCaches : public testing::TestWithParam<Lying> {};
INSTANTIATE_TEST_SUITE_P(Ways, KvCaches, testing::Values(kRows, kTiles, kWhole),
                         [](const auto& each) { return each.param.name; });

TEST_P(KvCaches, CommitMovesTheKeptRowsInOrderAndNothingElse) {
  KvCache cache = make_cache(GetParam());
  for (int32_t i = 0; i < kSlots; ++i) cache.open();
  for (const int32_t slot : {2, 0, 1}) fill(cache, slot, 64, slot);
  cache.commit(1, first_rows(29));                  // in place: no byte moves
  const std::vector<int32_t> kept{0, 1, 3, 6, 19};  // to 29, …, 33: over the border of a block
  cache.commit(1, kept);
  EXPECT_EQ(cache.length(1), 34);
  EXPECT_EQ(count_wrong(cache, 1, 64, 1,
                        [&](int64_t row) {
                          const bool moved = row >= 29 && row < 34;
                          return moved ? 29 + kept[static_cast<size_t>(row - 29)] : row;
                        }),
            0);
  EXPECT_EQ(count_wrong(cache, 0, 64, 0, itself), 0);
  EXPECT_EQ(count_wrong(cache, 2, 64, 2, itself), 0);
}

TEST_P(KvCaches, SlotsOpenEmptyAndComeBack) {
  KvCache cache = make_cache(GetParam());
  EXPECT_EQ(cache.num_free(), kSlots);
  const int32_t a = cache.open(), b = cache.open(), c = cache.open();
  EXPECT_EQ(cache.num_free(), 0);
  EXPECT_FALSE(cache.has_room(1));
  EXPECT_THROW(cache.open(), std::logic_error);
  cache.commit(b, first_rows(2));
  EXPECT_EQ(cache.length(a), 0);
  EXPECT_EQ(cache.length(b), 2);
  cache.close(b);
  EXPECT_THROW(cache.close(b), std::logic_error);
  EXPECT_EQ(cache.open(), b);
  EXPECT_EQ(cache.length(b), 0);
  for (const int32_t slot : {a, b, c}) cache.close(slot);
  EXPECT_EQ(cache.num_free(), kSlots);
  EXPECT_EQ(cache.use().blocks_used, 0);
}

TEST_P(KvCaches, RewindForgetsTheLastRows) {
  KvCache cache = make_cache(GetParam());
  const int32_t slot = cache.open();
  cache.commit(slot, first_rows(4));
  cache.rewind(slot, 1);
  EXPECT_EQ(cache.length(slot), 1);
  EXPECT_THROW(cache.rewind(slot, 2), std::logic_error);
  EXPECT_THROW(cache.rewind(slot, -1), std::logic_error);
}

TEST_P(KvCaches, ALargerCacheTakesTheRows) {
  KvCache cache = make_cache(GetParam()), larger = make_cache(GetParam(), 2, 160);
  const int32_t slot = cache.open();
  fill(cache, slot, 70, 5);
  cache.commit(slot, first_rows(70));
  larger.open();
  const int32_t there = larger.open();
  larger.take_rows(there, cache, slot);
  EXPECT_EQ(larger.length(there), 70);
  EXPECT_EQ(count_wrong(larger, there, 70, 5, itself), 0);
}

TEST_P(KvCaches, RowsThatDoNotAscendOrFitAreABug) {
  KvCache cache = make_cache(GetParam());
  const int32_t slot = cache.open();
  const std::vector<int32_t> descending{2, 1}, twice{3, 3, 3, 3, 3}, beyond{kCapacity};
  EXPECT_THROW(cache.commit(slot, descending), std::logic_error);
  EXPECT_THROW(cache.commit(slot, twice), std::logic_error);
  EXPECT_THROW(cache.commit(slot, beyond), std::logic_error);
  EXPECT_EQ(cache.length(slot), 0);
}

TEST(KvCache, WholeSlotsLieOneBehindTheOtherWhateverOpensFirst) {
  KvCache cache = make_cache(kWhole);
  for (int32_t i = 0; i < kSlots; ++i) EXPECT_EQ(cache.open(), i);
  cache.close(1);
  cache.close(0);
  for (const int32_t slot : {0, 1}) EXPECT_EQ(cache.open(), slot);
  for (int32_t slot = 0; slot < kSlots; ++slot) {
    fill(cache, slot, kCapacity, slot);
    EXPECT_TRUE(
        at::equal(cache.keys().select(1, slot)[1], cache.read(KvSide::Keys, 1, slot, kCapacity)));
  }
  EXPECT_EQ(cache.use().blocks_total, kSlots);
}

int64_t block_bytes() { return KvBlocks::block_bytes(tiny_config(), 32, at::kFloat); }

TEST(KvCache, MemoryIsTakenAsItIsUsed) {
  // 16 sequences of 8,192 rows would be 4,096 blocks.
  KvCache cache = make_cache(kRows, 16, 8192);
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(cache.use().blocks_total, 4096);
  EXPECT_EQ(cache.total_rows(), 16 * 8192);
  for (int i = 0; i < 16; ++i) cache.commit(cache.open(), first_rows(40));
  EXPECT_EQ(cache.use().blocks_used, 32);
  EXPECT_EQ(cache.bytes(), 32 * block_bytes());
  EXPECT_EQ(cache.use().bytes, cache.bytes());
  for (int32_t slot = 0; slot < 16; ++slot) cache.close(slot);
  for (int i = 0; i < 16; ++i) cache.commit(cache.open(), first_rows(40));
  EXPECT_EQ(cache.bytes(), 32 * block_bytes()) << "the same blocks again";
}

TEST(KvCache, CapacityIsRoundedUpTo32) {
  for (const auto& [asked, given] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 32}, {32, 32}, {33, 64}}) {
    const KvCache cache = make_cache(kRows, 1, asked);
    EXPECT_EQ(cache.capacity(), given);
    EXPECT_EQ(cache.total_rows(), given);
  }
}

TEST(KvCache, ABudgetIsNeverExceededAndTooSmallAOneIsRefused) {
  for (const int64_t blocks : {1, 2, 5, 17, 40}) {
    KvCache cache = make_cache(kRows, 64, kCapacity, blocks * block_bytes() + 5);
    EXPECT_LE(cache.use().blocks_total, blocks);
    EXPECT_GE(cache.use().blocks_total, blocks - 1) << "blocks are allocated some at a time";
    while (cache.has_room(32)) cache.commit(cache.open(32), first_rows(32));
    EXPECT_EQ(cache.use().blocks_used, cache.use().blocks_total);
    EXPECT_LE(cache.bytes(), blocks * block_bytes());
  }
  EXPECT_EQ(fixtures::error_text([] { make_cache(kRows, 1, kCapacity, 100); }),
            "the KV cache may take 100 bytes, found blocks of " + std::to_string(block_bytes()) +
                " bytes (32 rows), expected room for at least one; raise backbone.cache_mb");
}

TEST(KvCache, TheBytesOfASlotHoldItAndFewerDoNot) {
  for (int64_t rows = 1; rows < 80 * 32; rows += 31) {
    const int64_t bytes = KvCache::slot_bytes(tiny_config(), rows, at::kFloat, false);
    EXPECT_GE(make_cache(kRows, 1, rows, bytes).total_rows(), rows);
    if (rows > 32) {
      EXPECT_LT(make_cache(kRows, 1, rows, bytes - 1).total_rows(), rows);
    }
  }
}

TEST(KvCache, ABlockWithoutMemoryIsGivenBack) {
  ModelConfig config = tiny_config();
  config.num_layers = int64_t{1} << 40;  // more bytes than there are addresses
  KvCache cache(config, 1, 64, at::kFloat, at::kCPU, KvLayout::Rows);
  const int32_t slot = cache.open();
  EXPECT_ANY_THROW(cache.make_room(slot, 64));
  EXPECT_EQ(cache.use().blocks_used, 0);
  cache.close(slot);
  EXPECT_TRUE(cache.has_room(64));
}

TEST(KvCache, WhatASequenceMayNeedIsReserved) {
  KvCache cache = make_cache(kRows, 8, kCapacity, 5 * block_bytes());
  const int32_t a = cache.open(96);  // three blocks, of which it uses none
  EXPECT_TRUE(cache.has_room(64));
  EXPECT_FALSE(cache.has_room(65));
  const int32_t b = cache.open(33);
  EXPECT_FALSE(cache.has_room(1));
  EXPECT_THROW(cache.open(1), std::logic_error);
  cache.make_room(b, 64);
  EXPECT_THROW(cache.make_room(b, 65), std::logic_error) << "more than it was opened for";
  cache.make_room(a, 96);
  cache.close(b);
  EXPECT_TRUE(cache.has_room(64));
}

std::vector<TokenId> text(int64_t count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// A slot with so many committed rows of a text.
int32_t open_with(KvCache& cache, const std::vector<TokenId>& tokens, int64_t which) {
  const int32_t slot = cache.open();
  fill(cache, slot, std::ssize(tokens), which);
  cache.commit(slot, first_rows(std::ssize(tokens)), tokens);
  return slot;
}

class SharedBlocks : public testing::TestWithParam<Lying> {};
INSTANTIATE_TEST_SUITE_P(Ways, SharedBlocks, testing::Values(kRows, kTiles),
                         [](const auto& each) { return each.param.name; });

TEST_P(SharedBlocks, ASequenceBeginsWithTheFullBlocksOfAnotherWhileItRunsAndAfterItsEnd) {
  KvCache cache = make_cache(GetParam());
  const auto tokens = text(70);
  const int32_t first = open_with(cache, tokens, 1);
  auto longer = tokens;
  longer.resize(90, 9);
  for (const bool is_open : {true, false}) {
    if (!is_open) cache.close(first);
    const int32_t second = cache.open();
    EXPECT_EQ(cache.reuse(second, longer, 89), 64);
    EXPECT_EQ(cache.length(second), 64);
    EXPECT_EQ(count_wrong(cache, second, 64, 1, itself), 0);
    EXPECT_EQ(cache.use().blocks_used, is_open ? 3 : 2) << "shared, not copied";
    cache.close(second);
  }
  EXPECT_EQ(cache.use().blocks_kept, 2);
  cache.forget_ended();
  const int32_t third = cache.open();
  EXPECT_EQ(cache.reuse(third, longer, 89), 0);
}

TEST_P(SharedBlocks, OnlyTheSameTokensFromTheStartAreShared) {
  KvCache cache = make_cache(GetParam());
  const auto tokens = text(96);
  cache.close(open_with(cache, tokens, 1));
  for (const auto& [changed, shared] :
       std::vector<std::pair<size_t, int64_t>>{{0, 0}, {31, 0}, {32, 32}, {64, 64}}) {
    auto other = tokens;
    other[changed] = 500;
    const int32_t slot = cache.open();
    EXPECT_EQ(cache.reuse(slot, other, 95), shared) << changed;
    cache.close(slot);
  }
}

TEST_P(SharedBlocks, ABlockIsNotSharedBehindAnotherBeginning) {
  KvCache cache = make_cache(GetParam());
  const auto with_end = [](std::vector<TokenId> tokens, TokenId end) {
    const auto more = text(32, end);
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
  };
  cache.close(open_with(cache, with_end(text(32, 0), 1000), 1));
  cache.close(open_with(cache, with_end(text(32, 500), 2000), 2));
  const int32_t slot = cache.open();
  EXPECT_EQ(cache.reuse(slot, with_end(text(32, 500), 1000), 64), 32) << "1000, … came behind 0, …";
  EXPECT_EQ(count_wrong(cache, slot, 32, 2, itself), 0);
}

TEST_P(SharedBlocks, RowsOfUnknownTokensAndThoseBehindThemAreNotShared) {
  KvCache cache = make_cache(GetParam());
  const auto tokens = text(96);
  const int32_t slot = cache.open();
  fill(cache, slot, 96, 1);
  cache.commit(slot, first_rows(32), std::span(tokens).first(32));
  cache.commit(slot, first_rows(1));
  cache.commit(slot, first_rows(63), std::span(tokens).last(63));
  EXPECT_EQ(cache.reuse(cache.open(), tokens, 95), 32);
  auto without_it = tokens;
  without_it.erase(without_it.begin() + 32);
  EXPECT_EQ(cache.reuse(cache.open(), without_it, 95), 32);
}

TEST_P(SharedBlocks, WhoWritesToASharedBlockGetsACopy) {
  KvCache cache = make_cache(GetParam());
  const auto tokens = text(64);
  const int32_t first = open_with(cache, tokens, 1), second = cache.open();
  EXPECT_EQ(cache.reuse(second, tokens, 63), 63) << "the last one's state is needed";
  EXPECT_EQ(cache.use().blocks_used, 2);
  cache.make_room(second, 64);  // it writes row 63
  EXPECT_EQ(cache.use().blocks_used, 3);
  EXPECT_EQ(count_wrong(cache, second, 63, 1, itself), 0) << "what is before it";
  cache.rewind(second, 0);
  fill(cache, second, 64, 2);
  EXPECT_EQ(cache.use().blocks_used, 4);
  EXPECT_EQ(count_wrong(cache, second, 64, 2, itself), 0);
  EXPECT_EQ(count_wrong(cache, first, 64, 1, itself), 0);
}

TEST_P(SharedBlocks, ARewoundBlockIsNotFoundOnceItIsWritten) {
  KvCache cache = make_cache(GetParam());
  const auto tokens = text(64);
  const int32_t slot = open_with(cache, tokens, 1);
  cache.rewind(slot, 40);
  const int32_t other = cache.open();
  EXPECT_EQ(cache.reuse(other, tokens, 64), 64) << "nobody has written to it";
  cache.close(other);
  cache.make_room(slot, 41);
  const int32_t later = cache.open();
  EXPECT_EQ(cache.reuse(later, tokens, 64), 32);
  cache.close(later);
  cache.commit(slot, first_rows(24), std::span(tokens).last(24));
  EXPECT_EQ(cache.reuse(cache.open(), tokens, 64), 64) << "written again";
}

TEST_P(SharedBlocks, WhatWasUsedLongestAgoMakesRoom) {
  KvCache cache = make_cache(GetParam());  // nine blocks
  cache.close(open_with(cache, text(96, 0), 1));
  cache.close(open_with(cache, text(96, 1000), 2));
  cache.close(open_with(cache, text(96, 2000), 3));
  EXPECT_EQ(cache.use().blocks_kept, 9);
  cache.close(open_with(cache, text(64, 3000), 4));
  const auto shared = [&](TokenId first) {
    const int32_t slot = cache.open();
    const int64_t rows = cache.reuse(slot, text(96, first), 96);
    cache.close(slot);
    return rows;
  };
  EXPECT_EQ(shared(0), 32) << "its last blocks went first";
  EXPECT_EQ(shared(1000), 96);
  EXPECT_EQ(shared(2000), 96);
  EXPECT_EQ(shared(3000), 64);
}

TEST_P(SharedBlocks, SharingNeverTakesWhatIsReserved) {
  // Six blocks, all reserved; the shared ones are counted for both.
  const int64_t bytes = KvBlocks::block_bytes(
      tiny_config(), 32, GetParam().layout == KvLayout::Rows ? at::kFloat : at::kBFloat16);
  KvCache cache = make_cache(GetParam(), 2, kCapacity, 6 * bytes);
  const auto tokens = text(64);
  const int32_t first = open_with(cache, tokens, 1), second = cache.open();
  EXPECT_EQ(cache.reuse(second, tokens, 64), 64);
  cache.rewind(first, 0);
  cache.rewind(second, 0);
  fill(cache, first, 96, 2);
  fill(cache, second, 96, 3);
  EXPECT_EQ(count_wrong(cache, first, 96, 2, itself), 0);
  EXPECT_EQ(count_wrong(cache, second, 96, 3, itself), 0);
}

}  // namespace
}  // namespace medusa
