// Half precision numbers without CUDA's own type, so that tests read them with the same code.
#pragma once

#include "backbone/cuda/launch.h"

namespace medusa {
namespace {

/// Of a finite number, exactly: its exponent is moved by a product, which also gives the smallest
/// numbers their leading bit.
__device__ inline float half_to_float(uint32_t bits) {
  const uint32_t moved = (bits & 0x7FFFU) << 13 | (bits & 0x8000U) << 16;
  return float_of_bits(moved) * 0x1.0p112F;
}

}  // namespace
}  // namespace medusa
