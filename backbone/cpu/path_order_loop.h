// The two steps of attention that put a scattered path in order: the softmax over its scores, and
// its values as if they lay in the cache one after the other. For kernel files only (avx512.h).
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "backbone/cpu/attention_types.h"
#include "backbone/cpu/avx512.h"
#include "backbone/cpu/tile_layout.h"

namespace medusa {
namespace {

constexpr int64_t kBlock = kTileDepth;  // cache rows that are one tile deep
constexpr float kUnseen = -1e30F;       // 2 to the power of it is 0

inline int64_t block_end(int64_t rows) { return ceil_div(rows, kBlock) * kBlock; }

/// Weights 2^(scale · (score - largest)) of the rows seen, in path order, 0 from there to `end`.
/// @param window  last rows that are seen; 0: all.
/// @param end     multiple of 32, at least row.length.
/// @param scores  by cache row; changed.
/// @returns       one over the sum of the weights.
template <typename Engine>
float soften(const AttentionRow& row, float scale, int64_t window, int64_t end, float* scores,
             typename Engine::Number* weights) {
  if (!row.straight)
    for (int64_t i = 0; i < row.length - row.start; ++i)  // path[i] >= start + i: read in time
      scores[row.start + i] = scores[row.path[i]];
  if (window > 0)
    for (int64_t i = 0; i < row.length - window; ++i) scores[i] = kUnseen;
  for (int64_t i = row.length; i < end; ++i) scores[i] = kUnseen;

  __m512 top = _mm512_set1_ps(kUnseen);
  for (int64_t i = 0; i < end; i += kLanes) top = _mm512_max_ps(top, _mm512_loadu_ps(scores + i));
  const __m512 factor = _mm512_set1_ps(scale);
  const __m512 shift = _mm512_set1_ps(_mm512_reduce_max_ps(top) * scale);

  // Two sums, each over every second group of 16: more groups of zeros do not change them.
  __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
  for (int64_t i = 0; i < end; i += 2 * kLanes) {
    const __m512 a = _mm512_loadu_ps(scores + i), b = _mm512_loadu_ps(scores + i + kLanes);
    const __m512 first = exp2_of(_mm512_fmsub_ps(a, factor, shift));
    const __m512 second = exp2_of(_mm512_fmsub_ps(b, factor, shift));
    even = _mm512_add_ps(even, first);
    odd = _mm512_add_ps(odd, second);
    Engine::store(weights + i, first);
    Engine::store(weights + i + kLanes, second);
  }
  return 1.0F / _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
}

/// The values that a row on a scattered path sees from row `begin` on, as they would lie in the
/// cache: rows of earlier passes from there, rows of this one from its plain copy, zeros behind the
/// path up to a multiple of 32.
/// @param begin  even.
inline void gather_path(const AttentionLayer& layer, const AttentionRow& row, int64_t group,
                        int64_t begin, uint16_t* out) {
  const int64_t d = layer.head_size;
  const uint16_t* cached = layer.values + layer.block(row.slot, group);
  const uint16_t* fresh =
      layer.fresh_values + (group * layer.fresh_rows + row.segment_begin - row.fresh_begin) * d;
  // Sixteen dimensions of one row, as the lower halves of words.
  const auto words = [&](int64_t at, int64_t dim) {
    if (at >= row.length) return _mm512_setzero_si512();
    const int64_t from = at < row.start ? at : row.path[at - row.start];
    if (from >= row.fresh_begin) {
      const uint16_t* plain = fresh + from * d + dim;
      return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(plain)));
    }
    const __m512i both = _mm512_loadu_si512(cached + from / 2 * 2 * d + dim * 2);
    return from % 2 != 0 ? _mm512_srli_epi32(both, 16)
                         : _mm512_and_si512(both, _mm512_set1_epi32(0xFFFF));
  };
  for (int64_t at = begin; at < block_end(row.length); at += 2)
    for (int64_t dim = 0; dim < d; dim += kLanes, out += 2 * kLanes)
      _mm512_storeu_si512(
          out, _mm512_or_si512(words(at, dim), _mm512_slli_epi32(words(at + 1, dim), 16)));
}

}  // namespace
}  // namespace medusa

#endif
