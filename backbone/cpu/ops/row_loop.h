// Small work on single rows of a pass. For kernel files only (simd.h).
#pragma once

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/simd/simd.h"

namespace medusa {
namespace {

inline void upcast(const uint16_t* from, int64_t size, float* to) {
  for (int64_t i = 0; i < size; i += kLanes) store_f32(to + i, load_bf16(from + i));
}

/// Calls store(column, sixteen normalized numbers).
template <typename Store>
void rms_norm_with(const float* x, const float* weight, float epsilon, int64_t size,
                   const Store& store) {
  F32x16 a = splat(0), b = splat(0);
  for (int64_t i = 0; i < size; i += 2 * kLanes) {
    const F32x16 low = load_f32(x + i), high = load_f32(x + i + kLanes);
    a = multiply_add(low, low, a);
    b = multiply_add(high, high, b);
  }
  const float mean = sum_of(a + b) / static_cast<float>(size);
  const F32x16 factor = splat(1.0F / __builtin_sqrtf(mean + epsilon));
  for (int64_t i = 0; i < size; i += kLanes)
    store(i, load_f32(x + i) * factor * load_f32(weight + i));
}

template <typename Kernel>
void rms_norm(const float* x, const float* weight, float epsilon, int64_t size, int64_t row,
              void* rows) {
  auto* to = static_cast<typename Kernel::Element*>(rows);
  const int64_t depth = size / kTileDepth;
  rms_norm_with(x, weight, epsilon, size, [&](int64_t column, F32x16 y) {
    Kernel::store(to + tiled_index(row, column, depth), y);
  });
}

inline void rms_norm_bf16(const float* x, const float* weight, float epsilon, int64_t size,
                          uint16_t* to) {
  rms_norm_with(x, weight, epsilon, size,
                [&](int64_t column, F32x16 y) { store_bf16(to + column, y); });
}

template <typename Kernel>
void pack_rows(const uint16_t* from, int64_t num_rows, int64_t k, void* rows) {
  auto* to = static_cast<typename Kernel::Element*>(rows);
  const int64_t depth = ceil_div(k, kTileDepth);
  for (int64_t row = 0; row < num_rows; ++row)
    for (int64_t column = 0; column < depth * kTileDepth; ++column)
      to[tiled_index(row, column, depth)] =
          Kernel::from_bf16(column < k ? from[row * k + column] : uint16_t{0});
}

}  // namespace
}  // namespace medusa
