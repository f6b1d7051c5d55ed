// The product that starts attention, with the rotary embedding and the write to the cache fused in:
// a pair's two blocks hold the dimensions that turn together (qkv_order), and one thread writes all
// rows of a pair, so no two threads write to the same cache line of the keys. For kernel files only
// (avx512.h).
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "backbone/cpu/attention_types.h"
#include "backbone/cpu/kv_tiles.h"
#include "backbone/cpu/product_loop.h"
#include "backbone/cpu/row_loop.h"

namespace medusa {
namespace {

/// One pair of output blocks: 32 numbers of one head.
struct HeadPart {
  int64_t head = 0;   // among heads of its kind: query, key or value
  int64_t block = 0;  // which of the head's pairs
};

/// Lane i of low and high are dimensions that turn together.
inline void rotate(const AttentionLayer& layer, const AttentionRow& row, int64_t block, __m512& low,
                   __m512& high) {
  if (layer.cos == nullptr) return;
  const int64_t at = row.position() * (layer.head_size / 2) + block * kTileRows;
  const __m512 cos = _mm512_loadu_ps(layer.cos + at), sin = _mm512_loadu_ps(layer.sin + at);
  const __m512 turned = _mm512_fmsub_ps(low, cos, _mm512_mul_ps(high, sin));
  high = _mm512_fmadd_ps(high, cos, _mm512_mul_ps(low, sin));
  low = turned;
}

template <typename Engine>
void write_query(const AttentionLayer& layer, int64_t n, HeadPart part, __m512 low, __m512 high) {
  const int64_t per_group = layer.heads_per_group();
  const int64_t group = part.head / per_group, head = part.head % per_group;
  const int64_t query = group * layer.query_rows + n * per_group + head;
  auto* to = static_cast<typename Engine::Number*>(layer.query) + query * layer.head_size +
             part.block * kTileRows;
  Engine::store(to, low);
  Engine::store(to + layer.head_size / 2, high);
}

inline void write_key(const AttentionLayer& layer, const AttentionRow& row, HeadPart part,
                      __m512 low, __m512 high) {
  // Sixteen words of two neighbouring dimensions. In the cache each lies 16 words behind the one
  // before it, and those of `high` half the head's words further.
  const __m512i words = _mm512_inserti64x4(_mm512_castsi256_si512(to_bf16(low)), to_bf16(high), 1);
  const __m512i lane =
      _mm512_setr_epi32(0, 16, 32, 48, 64, 80, 96, 112, 0, 16, 32, 48, 64, 80, 96, 112);
  const auto half = static_cast<int>(layer.head_size) / 4 * 16;
  const __m512i index = _mm512_mask_add_epi32(lane, 0xFF00, lane, _mm512_set1_epi32(half));
  uint16_t* to = layer.keys + layer.block(row.slot, part.head) +
                 tile_key_index(row.cache_row, part.block * kTileRows, layer.head_size);
  _mm512_i32scatter_epi32(to, index, words, 4);
}

inline void write_value(const AttentionLayer& layer, const AttentionRow& row, int64_t n,
                        HeadPart part, __m512 low, __m512 high) {
  const int64_t dim = part.block * kPairOutputs;
  const __m256i bits[2] = {to_bf16(low), to_bf16(high)};
  uint16_t* fresh = layer.fresh_values + (part.head * layer.fresh_rows + n) * layer.head_size + dim;
  // An even row fills the lower halves of the words that it shares with the next row.
  uint16_t* pair = layer.values + layer.block(row.slot, part.head) +
                   tile_value_index(row.cache_row & ~int64_t{1}, dim, layer.head_size);
  const bool odd = row.cache_row % 2 != 0;
  const __mmask32 mine = odd ? 0xAAAAAAAA : 0x55555555;
  for (int64_t i = 0; i < 2; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(fresh + i * kLanes), bits[i]);
    const __m512i words = _mm512_cvtepu16_epi32(bits[i]);
    _mm512_mask_storeu_epi16(pair + i * 2 * kLanes, mine,
                             odd ? _mm512_slli_epi32(words, 16) : words);
  }
}

/// Turns a pair's numbers of row n and writes them where they belong.
template <typename Engine>
void place_pair(const AttentionLayer& layer, int64_t pair, int64_t n, __m512 low, __m512 high) {
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
    write_query<Engine>(layer, n, {head, block}, low, high);
}

template <typename Engine>
void product_qkv(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                 const AttentionLayer& layer) {
  for_each_pair<Engine>(weight, rows, num_rows, pairs,
                        [&](int64_t pair, int64_t n, __m512 low, __m512 high) {
                          if (layer.qkv_bias != nullptr) {
                            const float* bias = layer.qkv_bias + pair * kPairOutputs;
                            low = _mm512_add_ps(low, _mm512_loadu_ps(bias));
                            high = _mm512_add_ps(high, _mm512_loadu_ps(bias + kLanes));
                          }
                          place_pair<Engine>(layer, pair, n, low, high);
                        });
}

/// A head whose norm needs all of it, and so the whole product.
template <typename Engine>
void place_heads(const AttentionLayer& layer, const float* qkv, int64_t num_rows, Range heads) {
  const int64_t size = layer.head_size, first_value = layer.num_heads + layer.num_kv_heads;
  const int64_t stride = (first_value + layer.num_kv_heads) * size;
  for (int64_t head = heads.begin; head < heads.end; ++head) {
    const float* norm = head < layer.num_heads ? layer.query_norm : layer.key_norm;
    for (int64_t n = 0; n < num_rows; ++n) {
      const float* from = qkv + n * stride + head * size;
      alignas(64) float pair[kPairOutputs];
      const auto place = [&](int64_t column, __m512 y) {  // called with ascending columns
        _mm512_store_ps(pair + column % kPairOutputs, y);
        if (column % kPairOutputs != 0)
          place_pair<Engine>(layer, (head * size + column) / kPairOutputs, n, _mm512_load_ps(pair),
                             y);
      };
      if (head < first_value)
        normalise_with(from, norm, layer.norm_epsilon, size, place);
      else
        for (int64_t i = 0; i < size; i += kLanes) place(i, _mm512_loadu_ps(from + i));
    }
  }
}

}  // namespace
}  // namespace medusa

#endif
