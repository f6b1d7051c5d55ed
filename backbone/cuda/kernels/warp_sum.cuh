// Sums and maxima over the lanes of a warp; every lane gets the result.
#pragma once

#include "backbone/cuda/launch.h"

namespace medusa {
namespace {

/// Always in the same order: neighbours first.
__device__ inline float warp_sum(float x) {
  for (int mask = 1; mask < kWarp; mask *= 2) x += shuffle_xor(x, mask);
  return x;
}

__device__ inline int32_t warp_max(int32_t x) {
  for (int mask = 1; mask < kWarp; mask *= 2) {
    const int32_t other = shuffle_xor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}

}  // namespace
}  // namespace medusa
