// What passes over a row of logits are made of: sixteen logits at a time (base/simd.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/simd.h"

namespace medusa {

/// Half of some F32x16 in double precision, or words of as many random numbers.
using Doubles = double __attribute__((vector_size(64)));
using Words = uint64_t __attribute__((vector_size(64)));
using WordMask = int64_t __attribute__((vector_size(64)));
inline constexpr size_t kDoubles = 8;

inline constexpr float kLowestExponent = -87.0F;  // exp of less is below any normal float: 0

/// Logits [i, i + kLanes) of a row; behind its end those of tokens that cannot come.
MEDUSA_INLINE void load_logits(const float* row, size_t i, size_t size, F32x16& x) {
  if (i + kLanes <= size) {
    load(row + i, x);
    return;
  }
  fill(-std::numeric_limits<float>::infinity(), x);
  if (i < size) std::memcpy(&x, row + i, (size - i) * sizeof(float));
}

/// Turns logits to how far they are below the largest, in units of the temperature: x = (x - max) ·
/// scale.
MEDUSA_INLINE void below_max(float max, float scale, F32x16& x) { x = (x - max) * scale; }

/// weight = e^x for x <= 0, relative error below 3e-7; 0 below kLowestExponent; a NaN stays one.
/// By 2^n · p(f): n = round(x / ln 2), |f| <= ln 2 / 2, p of degree 6. Each multiplication is fused
/// with the addition behind it where the processor can, so that all of these (AVX2, AVX-512 and a
/// GPU, infer/cuda/logit_rows.cuh) give the same bits.
MEDUSA_INLINE void weigh(const F32x16& exponent, F32x16& weight) {
  F32x16 lowest, p;
  fill(kLowestExponent, lowest);
  fill(1.0F / 720, p);
  const F32x16 x = exponent < lowest ? lowest : exponent;
  const I32x16 whole = __builtin_convertvector(x * 1.44269504F - 0.5F, I32x16);
  const F32x16 n = __builtin_convertvector(whole, F32x16);
  const F32x16 f = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln 2 in two parts
  p = p * f + 1.0F / 120;
  p = p * f + 1.0F / 24;
  p = p * f + 1.0F / 6;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  const I32x16 power = (whole + 127) << 23;
  F32x16 scale;
  std::memcpy(&scale, &power, sizeof scale);
  weight = exponent < lowest ? F32x16{} : p * scale;
}

MEDUSA_INLINE void upcast(const float* from, Doubles& x) {
  float __attribute__((vector_size(kDoubles * sizeof(float)))) half;
  std::memcpy(&half, from, sizeof half);
  x = __builtin_convertvector(half, Doubles);
}

/// Sums in double precision, each lane by itself.
struct VecSums {
  Doubles low{}, high{};

  MEDUSA_INLINE void add(const F32x16& x) {
    float __attribute__((vector_size(kDoubles * sizeof(float)))) half[2];
    std::memcpy(half, &x, sizeof half);
    low += __builtin_convertvector(half[0], Doubles);
    high += __builtin_convertvector(half[1], Doubles);
  }
  /// Lane after lane.
  MEDUSA_INLINE double total() const {
    double sum = 0;
    for (size_t i = 0; i < kDoubles; ++i) sum += low[i];
    for (size_t i = 0; i < kDoubles; ++i) sum += high[i];
    return sum;
  }
};

/// Says whether a comparison holds in any place. @tparam Mask  I32x16 or WordMask.
template <typename Mask>
MEDUSA_INLINE bool any_of(const Mask& mask) {
  uint64_t words[kDoubles], any = 0;
  std::memcpy(words, &mask, sizeof words);
  for (const uint64_t word : words) any |= word;
  return any != 0;
}

}  // namespace medusa
