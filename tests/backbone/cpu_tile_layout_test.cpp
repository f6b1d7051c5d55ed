#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backbone/cpu/layout/kv_tiles.h"
#include "backbone/cpu/layout/tile_weight.h"

namespace medusa {
namespace {

TEST(TileWeight, HoldsEveryWeightInItsWordAndZerosElsewhere) {
  const int64_t n = 35, k = 40;
  const at::Tensor weight = (1 + at::arange(n * k, at::kFloat).remainder(251)).view({n, k});
  const TileWeight packed(weight);
  const TileWeightView view = packed.view();
  EXPECT_EQ(view.depth, 2);
  EXPECT_EQ(view.num_pairs(), 2);
  const at::Tensor values = at::from_blob(static_cast<uint16_t*>(const_cast<void*>(view.data)),
                                          {2, 2, 2, 16, 16, 2}, at::kBFloat16)
                                .to(at::kFloat);  // [pair][tile of k][block][word][output][2]
  const at::Tensor plain = values.permute({0, 2, 4, 1, 3, 5}).reshape({64, 64});
  EXPECT_TRUE(at::equal(plain.narrow(0, 0, n).narrow(1, 0, k), weight));
  EXPECT_EQ(plain.sum().item<float>(), weight.sum().item<float>());
}

TEST(TileWeight, OrdersPutTurningDimensionsAndGatesSideBySide) {
  const auto qkv = qkv_order(2, 1, 64);  // a query head, a key head, a value head
  EXPECT_EQ(qkv.size(), 192U);
  EXPECT_EQ(std::set<int64_t>(qkv.begin(), qkv.end()).size(), 192U);
  for (size_t pair = 0; pair < 4; ++pair)
    for (size_t lane = 0; lane < 16; ++lane)
      EXPECT_EQ(qkv[pair * 32 + 16 + lane], qkv[pair * 32 + lane] + 32);
  for (size_t i = 128; i < 192; ++i) EXPECT_EQ(qkv[i], static_cast<int64_t>(i));

  const auto mlp = gate_up_order(20);
  EXPECT_EQ(mlp.size(), 64U);
  EXPECT_EQ(mlp[15], 15);
  EXPECT_EQ(mlp[16], 20);  // the up of gate 0
  EXPECT_EQ(mlp[35], 19);
  EXPECT_EQ(mlp[36], -1);
  EXPECT_EQ(mlp[51], 39);
  EXPECT_EQ(mlp[52], -1);
}

TEST(KvTiles, EveryElementHasItsOwnPlaceInLayoutOrder) {
  const int64_t capacity = 32, head_size = 32;
  std::set<int64_t> keys, values;
  for (int64_t row = 0; row < capacity; ++row)
    for (int64_t dim = 0; dim < head_size; ++dim) {
      keys.insert(tile_key_index(row, dim, head_size));
      values.insert(tile_value_index(row, dim, head_size));
    }
  for (const auto& places : {keys, values}) {
    EXPECT_EQ(places.size(), static_cast<size_t>(capacity * head_size));
    EXPECT_EQ(*places.rbegin(), capacity * head_size - 1);
  }
  EXPECT_EQ(tile_key_index(17, 5, 32), 16 * 32 + 2 * 32 + 2 + 1);
  EXPECT_EQ(tile_value_index(3, 5, 32), 2 * 32 + 5 * 2 + 1);
}

TEST(KvTiles, OneRowIsCopiedAndNothingElse) {
  const int64_t capacity = kKvBlockRows, head_size = 32;
  const auto size = static_cast<size_t>(capacity * head_size);
  std::vector<uint16_t> keys(size), values(size);
  for (size_t i = 0; i < size; ++i) {
    keys[i] = static_cast<uint16_t>(i);
    values[i] = static_cast<uint16_t>(i + 5000);
  }
  auto moved_keys = keys, moved_values = values;
  copy_tile_key(moved_keys.data(), 25, moved_keys.data(), 7, head_size);
  copy_tile_value(moved_values.data(), 25, moved_values.data(), 7, head_size);
  for (int64_t row = 0; row < capacity; ++row)
    for (int64_t dim = 0; dim < head_size; ++dim) {
      const int64_t from = row == 7 ? 25 : row;
      const auto key = [&](int64_t r) { return static_cast<size_t>(tile_key_index(r, dim, 32)); };
      const auto value = [&](int64_t r) {
        return static_cast<size_t>(tile_value_index(r, dim, 32));
      };
      ASSERT_EQ(moved_keys[key(row)], keys[key(from)]);
      ASSERT_EQ(moved_values[value(row)], values[value(from)]);
    }
}

}  // namespace
}  // namespace medusa
