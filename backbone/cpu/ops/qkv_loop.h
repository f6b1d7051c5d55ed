// The GEMM that starts attention, with the rotary embedding and the write to the cache fused in:
// a pair's two blocks hold the dimensions that are rotated together (qkv_order), and one thread
// writes all rows of a pair, so no two threads write to the same cache line of the keys. For kernel
// files only (simd.h).
#pragma once

#include "backbone/cpu/gemm/gemm_loop.h"
#include "backbone/cpu/layout/kv_tiles.h"
#include "backbone/cpu/ops/attention_types.h"
#include "backbone/cpu/ops/row_loop.h"

namespace medusa {
namespace {

/// One pair of output blocks: 32 elements of one head.
struct HeadPanel {
  int64_t head = 0;   // among heads of its kind: query, key or value
  int64_t block = 0;  // which of the head's pairs
};

/// Lane i of low and high are dimensions that are rotated together.
inline void rotate(const AttentionLayer& layer, const AttentionRow& row, int64_t block, F32x16& low,
                   F32x16& high) {
  if (layer.cos == nullptr) return;
  const int64_t at = row.position() * (layer.head_size / 2) + block * kTileRows;
  const F32x16 cos = load_f32(layer.cos + at), sin = load_f32(layer.sin + at);
  const F32x16 rotated = multiply_subtract(low, cos, high * sin);
  high = multiply_add(high, cos, low * sin);
  low = rotated;
}

template <typename Kernel>
void write_query(const AttentionLayer& layer, int64_t n, HeadPanel panel, F32x16 low, F32x16 high) {
  const int64_t per_group = layer.heads_per_group();
  const int64_t group = panel.head / per_group, head = panel.head % per_group;
  const int64_t query = group * layer.query_rows + n * per_group + head;
  auto* to = static_cast<typename Kernel::Element*>(layer.query) + query * layer.head_size +
             panel.block * kTileRows;
  Kernel::store(to, low);
  Kernel::store(to + layer.head_size / 2, high);
}

inline void write_key(const AttentionLayer& layer, const AttentionRow& row, HeadPanel panel,
                      F32x16 low, F32x16 high) {
  uint16_t* to =
      row.own_block + layer.keys_of(panel.head) +
      tile_key_index(row.cache_row % kKvBlockRows, panel.block * kTileRows, layer.head_size);
  scatter_words(to, low, high, layer.head_size / 4 * 16);  // `high`: half the head further
}

inline void write_value(const AttentionLayer& layer, const AttentionRow& row, int64_t n,
                        HeadPanel panel, F32x16 low, F32x16 high) {
  const int64_t dim = panel.block * kPairOutputs;
  uint16_t* own = layer.pass_values + (panel.head * layer.pass_rows + n) * layer.head_size + dim;
  // An even row fills the lower halves of the words that it shares with the next row.
  const int64_t index = row.cache_row % kKvBlockRows;
  uint16_t* pair = row.own_block + layer.values_of(panel.head) +
                   tile_value_index(index & ~int64_t{1}, dim, layer.head_size);
  const bool odd = index % 2 != 0;
  store_bf16(own, low);
  store_bf16(own + kLanes, high);
  store_halves(pair, low, odd);
  store_halves(pair + 2 * kLanes, high, odd);
}

/// Rotates a pair's elements of row n and writes them where they belong.
template <typename Kernel>
void rope_and_cache_pair(const AttentionLayer& layer, int64_t pair, int64_t n, F32x16 low,
                         F32x16 high) {
  const int64_t per_head = layer.head_size / kPairOutputs;
  const int64_t first_key = layer.num_heads, first_value = first_key + layer.num_kv_heads;
  const AttentionRow& row = layer.rows[n];
  const int64_t head = pair / per_head, block = pair % per_head;
  if (head >= first_value) {
    write_value(layer, row, n, {head - first_value, block}, low, high);
    return;
  }
  rotate(layer, row, block, low, high);
  if (head >= first_key)
    write_key(layer, row, {head - first_key, block}, low, high);
  else
    write_query<Kernel>(layer, n, {head, block}, low, high);
}

template <typename Kernel>
void gemm_qkv(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
              const AttentionLayer& layer) {
  for_each_pair<Kernel>(weight, rows, num_rows, pairs,
                        [&](int64_t pair, int64_t n, F32x16 low, F32x16 high) {
                          if (layer.qkv_bias != nullptr) {
                            const float* bias = layer.qkv_bias + pair * kPairOutputs;
                            low = low + load_f32(bias);
                            high = high + load_f32(bias + kLanes);
                          }
                          rope_and_cache_pair<Kernel>(layer, pair, n, low, high);
                        });
}

/// A head whose norm needs all of it, and so the whole GEMM.
template <typename Kernel>
void rope_and_cache(const AttentionLayer& layer, const float* qkv, int64_t num_rows, Range heads) {
  const int64_t size = layer.head_size, first_value = layer.num_heads + layer.num_kv_heads;
  const int64_t stride = (first_value + layer.num_kv_heads) * size;
  for (int64_t head = heads.begin; head < heads.end; ++head) {
    const float* norm = head < layer.num_heads ? layer.query_norm : layer.key_norm;
    for (int64_t n = 0; n < num_rows; ++n) {
      const float* from = qkv + n * stride + head * size;
      alignas(64) float pair[kPairOutputs];
      const auto place = [&](int64_t column, F32x16 y) {  // called with ascending columns
        store_f32(pair + column % kPairOutputs, y);
        if (column % kPairOutputs != 0)
          rope_and_cache_pair<Kernel>(layer, (head * size + column) / kPairOutputs, n,
                                      load_f32(pair), y);
      };
      if (head < first_value)
        rms_norm_with(from, norm, layer.norm_epsilon, size, place);
      else
        for (int64_t i = 0; i < size; i += kLanes) place(i, load_f32(from + i));
    }
  }
}

}  // namespace
}  // namespace medusa
