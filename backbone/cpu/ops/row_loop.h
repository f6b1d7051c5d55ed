// Small work on single rows of a pass. For kernel files only (lanes.h).
#pragma once

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/simd/lanes.h"

namespace medusa {
namespace {

inline void widen(const uint16_t* from, int64_t size, float* to) {
  for (int64_t i = 0; i < size; i += kLanes) store_floats(to + i, load_bf16(from + i));
}

/// Calls store(column, sixteen normalised numbers).
template <typename Store>
void normalise_with(const float* x, const float* weight, float epsilon, int64_t size,
                    const Store& store) {
  Floats a = all_lanes(0), b = all_lanes(0);
  for (int64_t i = 0; i < size; i += 2 * kLanes) {
    const Floats low = load_floats(x + i), high = load_floats(x + i + kLanes);
    a = multiply_add(low, low, a);
    b = multiply_add(high, high, b);
  }
  const float mean = sum_of(a + b) / static_cast<float>(size);
  const Floats factor = all_lanes(1.0F / __builtin_sqrtf(mean + epsilon));
  for (int64_t i = 0; i < size; i += kLanes)
    store(i, load_floats(x + i) * factor * load_floats(weight + i));
}

template <typename Engine>
void normalise(const float* x, const float* weight, float epsilon, int64_t size, int64_t row,
               void* rows) {
  auto* to = static_cast<typename Engine::Number*>(rows);
  const int64_t depth = size / kTileDepth;
  normalise_with(x, weight, epsilon, size, [&](int64_t column, Floats y) {
    Engine::store(to + tiled_index(row, column, depth), y);
  });
}

inline void normalise_plain(const float* x, const float* weight, float epsilon, int64_t size,
                            uint16_t* to) {
  normalise_with(x, weight, epsilon, size,
                 [&](int64_t column, Floats y) { store_bf16(to + column, y); });
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
