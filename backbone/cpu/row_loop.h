// Small work on single rows of a pass. For kernel files only (avx512.h).
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "backbone/cpu/avx512.h"
#include "backbone/cpu/tile_layout.h"

namespace medusa {
namespace {

inline void widen(const uint16_t* from, int64_t size, float* to) {
  for (int64_t i = 0; i < size; i += kLanes) _mm512_storeu_ps(to + i, load_bf16(from + i));
}

/// Calls store(column, sixteen normalised numbers).
template <typename Store>
void normalise_with(const float* x, const float* weight, float epsilon, int64_t size,
                    const Store& store) {
  __m512 a = _mm512_setzero_ps(), b = _mm512_setzero_ps();
  for (int64_t i = 0; i < size; i += 2 * kLanes) {
    const __m512 low = _mm512_loadu_ps(x + i), high = _mm512_loadu_ps(x + i + kLanes);
    a = _mm512_fmadd_ps(low, low, a);
    b = _mm512_fmadd_ps(high, high, b);
  }
  const float mean = _mm512_reduce_add_ps(_mm512_add_ps(a, b)) / static_cast<float>(size);
  const __m512 factor = _mm512_set1_ps(1.0F / __builtin_sqrtf(mean + epsilon));
  for (int64_t i = 0; i < size; i += kLanes)
    store(i, _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor),
                           _mm512_loadu_ps(weight + i)));
}

template <typename Engine>
void normalise(const float* x, const float* weight, float epsilon, int64_t size, int64_t row,
               void* rows) {
  auto* to = static_cast<typename Engine::Number*>(rows);
  const int64_t depth = size / kTileDepth;
  normalise_with(x, weight, epsilon, size, [&](int64_t column, __m512 y) {
    Engine::store(to + tiled_index(row, column, depth), y);
  });
}

inline void normalise_plain(const float* x, const float* weight, float epsilon, int64_t size,
                            uint16_t* to) {
  normalise_with(x, weight, epsilon, size,
                 [&](int64_t column, __m512 y) { store_bf16(to + column, y); });
}

template <typename Engine>
void tile(const uint16_t* from, int64_t num_rows, int64_t k, void* rows) {
  auto* to = static_cast<typename Engine::Number*>(rows);
  const int64_t depth = ceil_div(k, kTileDepth);
  for (int64_t row = 0; row < num_rows; ++row)
    for (int64_t column = 0; column < depth * kTileDepth; ++column)
      to[tiled_index(row, column, depth)] =
          Engine::from_bf16(column < k ? from[row * k + column] : uint16_t{0});
}

}  // namespace
}  // namespace medusa

#endif
