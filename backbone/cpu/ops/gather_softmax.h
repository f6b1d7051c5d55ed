// The two steps of attention that put a scattered path in order: the softmax over its scores, and
// its values as if they lay in the cache one after the other. For kernel files only (simd.h).
#pragma once

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/ops/attention_types.h"
#include "backbone/cpu/simd/simd.h"

namespace medusa {
namespace {

constexpr int64_t kBlock = kKvBlockRows;  // cache rows that are one tile deep
static_assert(kBlock == kTileDepth);
constexpr float kUnseen = -1e30F;  // 2 to the power of it is 0

inline int64_t block_end(int64_t rows) { return ceil_div(rows, kBlock) * kBlock; }

/// Weights 2^(scale · (score - largest)) of the rows seen, in path order, 0 from there to `end`.
/// @param window  last rows that are seen; 0: all.
/// @param end     multiple of 32, at least row.length.
/// @param scores  by cache row; changed.
/// @returns       one over the sum of the weights.
template <typename Kernel>
float softmax(const AttentionRow& row, float scale, int64_t window, int64_t end, float* scores,
              typename Kernel::Element* weights) {
  if (!row.contiguous)
    for (int64_t i = 0; i < row.length - row.start; ++i)  // path[i] >= start + i: read in time
      scores[row.start + i] = scores[row.path[i]];
  if (window > 0)
    for (int64_t i = 0; i < row.length - window; ++i) scores[i] = kUnseen;
  for (int64_t i = row.length; i < end; ++i) scores[i] = kUnseen;

  F32x16 top = splat(kUnseen);
  for (int64_t i = 0; i < end; i += kLanes) top = larger(top, load_f32(scores + i));
  const F32x16 factor = splat(scale);
  const F32x16 shift = splat(largest_of(top) * scale);

  // Two sums, each over every second group of 16: more groups of zeros do not change them.
  F32x16 even = splat(0), odd = splat(0);
  for (int64_t i = 0; i < end; i += 2 * kLanes) {
    const F32x16 a = load_f32(scores + i), b = load_f32(scores + i + kLanes);
    const F32x16 first = exp2_of(multiply_subtract(a, factor, shift));
    const F32x16 second = exp2_of(multiply_subtract(b, factor, shift));
    even = even + first;
    odd = odd + second;
    Kernel::store(weights + i, first);
    Kernel::store(weights + i + kLanes, second);
  }
  return 1.0F / sum_of(even + odd);
}

/// Where a row's values are read; nowhere: zeros.
struct ValueRow {
  const uint16_t* own = nullptr;   // plain
  const uint16_t* pair = nullptr;  // in the cache, with its neighbor's
  bool is_odd = false;             // of the pair

  /// Sixteen dimensions, as the lower halves of words.
  Words words(int64_t dim) const {
    if (own != nullptr) return upcast_words(own + dim);
    return pair != nullptr ? half_words(pair + dim * 2, is_odd) : Words{};
  }
};

/// The values that a row on a scattered path sees from row `begin` on, as they would lie in the
/// cache: rows of earlier passes from there, rows of this one from its plain copy, zeros behind the
/// path up to a multiple of 32.
/// @param begin  even.
inline void gather_path(const AttentionLayer& layer, const AttentionRow& row, int64_t group,
                        int64_t begin, uint16_t* out) {
  const int64_t d = layer.head_size;
  const uint16_t* own =
      layer.pass_values + (group * layer.pass_rows + row.segment_begin - row.pass_begin) * d;
  const auto find = [&](int64_t at) {
    if (at >= row.length) return ValueRow{};
    const int64_t from = at < row.start ? at : row.path[at - row.start];
    if (from >= row.pass_begin) return ValueRow{.own = own + from * d};
    const uint16_t* block = row.blocks[from / kBlock] + layer.values_of(group);
    return ValueRow{.pair = block + from % kBlock / 2 * 2 * d, .is_odd = from % 2 != 0};
  };
  for (int64_t at = begin; at < block_end(row.length); at += 2) {
    const ValueRow even = find(at), odd = find(at + 1);
    for (int64_t dim = 0; dim < d; dim += kLanes, out += 2 * kLanes)
      store_words(out, even.words(dim), odd.words(dim));
  }
}

}  // namespace
}  // namespace medusa
