#include "backbone/cpu/row_kernels.h"

#include "backbone/cpu/avx512.h"
#include "backbone/cpu/tile_layout.h"

namespace medusa {

void widen_row(const uint16_t* from, int64_t size, float* to) {
  for (int64_t i = 0; i < size; i += kLanes) _mm512_storeu_ps(to + i, load_bf16(from + i));
}

void normalise_row(const float* x, const float* weight, float epsilon, int64_t size, uint16_t* to,
                   int64_t stride) {
  __m512 a = _mm512_setzero_ps(), b = _mm512_setzero_ps();
  for (int64_t i = 0; i < size; i += 2 * kLanes) {
    const __m512 low = _mm512_loadu_ps(x + i), high = _mm512_loadu_ps(x + i + kLanes);
    a = _mm512_fmadd_ps(low, low, a);
    b = _mm512_fmadd_ps(high, high, b);
  }
  const float mean = _mm512_reduce_add_ps(_mm512_add_ps(a, b)) / static_cast<float>(size);
  const __m512 factor = _mm512_set1_ps(1.0F / __builtin_sqrtf(mean + epsilon));
  for (int64_t i = 0; i < size; i += 2 * kLanes, to += stride)
    for (int64_t j = 0; j < 2 * kLanes; j += kLanes)
      store_bf16(to + j, _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i + j), factor),
                                       _mm512_loadu_ps(weight + i + j)));
}

void tile_rows(const uint16_t* rows, int64_t num_rows, int64_t k, uint16_t* to) {
  const int64_t depth = ceil_div(k, kTileDepth);
  for (int64_t row = 0; row < num_rows; ++row)
    for (int64_t column = 0; column < depth * kTileDepth; column += kTileDepth) {
      uint16_t* group = to + tiled_index(row, column, depth);
      for (int64_t i = 0; i < kTileDepth; ++i)
        group[i] = column + i < k ? rows[row * k + column + i] : uint16_t{0};
    }
}

}  // namespace medusa
