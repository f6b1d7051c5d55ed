#include "backbone/kv_cache.h"

#include <gtest/gtest.h>

#include "backbone/cpu/layout/kv_tiles.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

constexpr int32_t kSlots = 3;
constexpr int64_t kCapacity = 64;

KvCache make_cache(KvLayout layout) {
  return {tiny_config(), kSlots, kCapacity, layout == KvLayout::Rows ? at::kFloat : at::kBFloat16,
          at::kCPU,      layout};
}

/// Calls use(key or value element, number that tells it apart) for every element of the cache. The
/// numbers of a (layer, slot, group) fit in bfloat16's bits, so both layouts can hold them.
template <typename Use>
void for_each_element(const KvCache& cache, const Use& use) {
  const auto sizes = cache.keys().sizes();  // [L, S, G, capacity, D]
  for (const at::Tensor& side : {cache.keys(), cache.values()})
    for (int64_t block = 0; block < sizes[0] * sizes[1] * sizes[2]; ++block)
      for (int64_t row = 0; row < kCapacity; ++row)
        for (int64_t dim = 0; dim < sizes[4]; ++dim) {
          const bool is_key = side.is_same(cache.keys());
          const int64_t base = block * kCapacity * sizes[4];
          if (cache.layout() == KvLayout::Rows) {
            use(static_cast<float*>(side.data_ptr())[base + row * sizes[4] + dim], block, row, dim);
          } else {
            const int64_t at =
                is_key ? tile_key_index(row, dim, sizes[4]) : tile_value_index(row, dim, sizes[4]);
            use(static_cast<uint16_t*>(side.data_ptr())[base + at], block, row, dim);
          }
        }
}

int64_t tag(int64_t block, int64_t row, int64_t dim) { return block * 2048 + row * 32 + dim; }

class KvCacheLayouts : public testing::TestWithParam<KvLayout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, KvCacheLayouts, testing::Values(KvLayout::Rows, KvLayout::Tiles),
                         [](const auto& each) {
                           return each.param == KvLayout::Rows ? "Rows" : "Tiles";
                         });

TEST_P(KvCacheLayouts, CommitMovesTheKeptRowsInOrderAndNothingElse) {
  KvCache cache = make_cache(GetParam());
  for (int32_t i = 0; i < kSlots; ++i) cache.open();
  const std::vector<int32_t> first{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  cache.commit(1, first);  // in place: no byte moves
  for_each_element(cache, [](auto& element, int64_t block, int64_t row, int64_t dim) {
    element = static_cast<std::remove_reference_t<decltype(element)>>(tag(block, row, dim));
  });
  const std::vector<int32_t> kept{0, 1, 3, 6, 19};  // to 14, …, 18: over the border of a tile
  cache.commit(1, kept);
  EXPECT_EQ(cache.length(1), 19);
  const int64_t groups = tiny_config().num_kv_heads;
  int64_t wrong = 0;
  for_each_element(cache, [&](auto& element, int64_t block, int64_t row, int64_t dim) {
    int64_t from = row;
    const bool is_slot_1 = block / groups % kSlots == 1;
    if (is_slot_1 && row >= 14 && row < 19) from = 14 + kept[static_cast<size_t>(row - 14)];
    const auto expected =
        static_cast<std::remove_reference_t<decltype(element)>>(tag(block, from, dim));
    wrong += element != expected ? 1 : 0;
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(KvCacheLayouts, SlotsOpenEmptyAndComeBack) {
  KvCache cache = make_cache(GetParam());
  EXPECT_EQ(cache.num_free(), kSlots);
  const int32_t a = cache.open(), b = cache.open(), c = cache.open();
  EXPECT_EQ(cache.num_free(), 0);
  EXPECT_THROW(cache.open(), std::logic_error);
  const std::vector<int32_t> rows{0, 1};
  cache.commit(b, rows);
  EXPECT_EQ(cache.length(a), 0);
  EXPECT_EQ(cache.length(b), 2);
  cache.close(b);
  EXPECT_THROW(cache.close(b), std::logic_error);
  EXPECT_EQ(cache.open(), b);
  EXPECT_EQ(cache.length(b), 0);
  cache.close(a);
  cache.close(b);
  cache.close(c);
  EXPECT_EQ(cache.num_free(), kSlots);
}

TEST_P(KvCacheLayouts, RewindForgetsTheLastRows) {
  KvCache cache = make_cache(GetParam());
  const int32_t slot = cache.open();
  const std::vector<int32_t> rows{0, 1, 2, 3};
  cache.commit(slot, rows);
  cache.rewind(slot, 1);
  EXPECT_EQ(cache.length(slot), 1);
  EXPECT_THROW(cache.rewind(slot, 2), std::logic_error);
  EXPECT_THROW(cache.rewind(slot, -1), std::logic_error);
}

TEST_P(KvCacheLayouts, GrowingKeepsWhatIsThereInItsPlace) {
  KvCache cache = make_cache(GetParam());
  const std::vector<int32_t> rows{0, 1, 2};
  cache.open();
  cache.commit(0, rows);
  for (const at::Tensor& side : {cache.keys(), cache.values()}) {
    at::Tensor numbers = at::arange(side.numel(), at::kLong).remainder(251);
    side.copy_(numbers.view(side.sizes()));
  }
  const at::Tensor keys = cache.keys(), values = cache.values();
  cache.reserve(kCapacity);
  EXPECT_TRUE(cache.keys().is_same(keys));
  cache.reserve(kCapacity + 1);
  EXPECT_EQ(cache.capacity(), 96);  // half again
  cache.reserve(300);
  EXPECT_EQ(cache.capacity(), 320);
  EXPECT_EQ(cache.length(0), 3);
  // A block's rows are its first numbers in either layout.
  const auto flat = [](const at::Tensor& side) { return side.flatten(3); };
  const int64_t before = keys.size(3) * keys.size(4);
  EXPECT_TRUE(at::equal(flat(cache.keys()).narrow(3, 0, before), flat(keys)));
  EXPECT_TRUE(at::equal(flat(cache.values()).narrow(3, 0, before), flat(values)));
  EXPECT_EQ(flat(cache.keys()).slice(3, before).abs().max().item<float>(), 0);
}

TEST_P(KvCacheLayouts, RowsThatDoNotAscendOrFitAreABug) {
  KvCache cache = make_cache(GetParam());
  const int32_t slot = cache.open();
  const std::vector<int32_t> descending{2, 1}, twice{3, 3, 3, 3, 3}, beyond{64};
  EXPECT_THROW(cache.commit(slot, descending), std::logic_error);
  EXPECT_THROW(cache.commit(slot, twice), std::logic_error);
  EXPECT_THROW(cache.commit(slot, beyond), std::logic_error);
  EXPECT_EQ(cache.length(slot), 0);
}

TEST(KvCache, CapacityIsRoundedUpTo32) {
  for (const auto& [asked, given] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 32}, {32, 32}, {33, 64}}) {
    const KvCache cache(tiny_config(), 1, asked, at::kFloat, at::kCPU, KvLayout::Rows);
    EXPECT_EQ(cache.capacity(), given);
    const ModelConfig config = tiny_config();
    EXPECT_EQ(cache.bytes(),
              2 * config.num_layers * config.num_kv_heads * given * config.head_size * 4);
  }
}

}  // namespace
}  // namespace medusa
