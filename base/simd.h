// Sixteen floats at a time, for loops over long rows: g++ turns the operators into whatever vector
// instructions the function is compiled for. Everything is inlined and passed by reference, so that
// it takes on the instruction set of its caller (see MEDUSA_WIDE).
#pragma once

#include <cstdint>
#include <cstring>

/// Before a function whose loops use F32x16: compiled for several instruction sets, chosen when the
/// program starts.
// TSan cannot watch the functions that choose a version: they run before it begins.
#ifdef __SANITIZE_THREAD__
#define MEDUSA_WIDE
#else
#define MEDUSA_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

namespace medusa {

constexpr int64_t kLanes = 16;

using F32x16 = float __attribute__((vector_size(kLanes * sizeof(float))));
using I32x16 = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

#define MEDUSA_INLINE [[gnu::always_inline]] inline

MEDUSA_INLINE void load(const float* from, F32x16& x) { std::memcpy(&x, from, sizeof x); }
MEDUSA_INLINE void store(const F32x16& x, float* to) { std::memcpy(to, &x, sizeof x); }

/// bfloat16 bits: the upper half of a float32.
MEDUSA_INLINE void load(const uint16_t* from, F32x16& x) {
  uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t)))) half;
  std::memcpy(&half, from, sizeof half);
  const I32x16 bits = __builtin_convertvector(half, I32x16) << 16;
  std::memcpy(&x, &bits, sizeof x);
}

/// Rounds to the nearest, ties to even, as LibTorch does; finite numbers only.
MEDUSA_INLINE void store(const F32x16& x, uint16_t* to) {
  using Half = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));
  I32x16 bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits += 0x7FFF + ((bits >> 16) & 1);
  const Half half = __builtin_convertvector(bits >> 16, Half);
  std::memcpy(to, &half, sizeof half);
}

MEDUSA_INLINE void fill(float value, F32x16& x) { x = F32x16{} + value; }
MEDUSA_INLINE void max_with(const F32x16& a, F32x16& x) { x = a > x ? a : x; }

/// x becomes e^x; relative error below 2e-7. Below -87 the result is 0 or about 1e-38.
MEDUSA_INLINE void exp_in_place(F32x16& x) {
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number
  F32x16 low, high;
  fill(-87.3F, low);
  fill(88.3F, high);
  x = x < low ? low : x;
  x = x > high ? high : x;
  const F32x16 shifted = x * kLog2E + kRound;
  const F32x16 whole = shifted - kRound;
  const F32x16 r = (x - whole * kLn2High) - whole * kLn2Low;  // |r| <= ln(2) / 2
  F32x16 p = r * 1.9875691500e-4F + 1.3981999507e-3F;         // Cephes' expf polynomial
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  I32x16 power = __builtin_convertvector(whole, I32x16);
  power = (power + 127) << 23;
  F32x16 scale;
  std::memcpy(&scale, &power, sizeof scale);
  x = p * scale;
}

MEDUSA_INLINE float sum_of(const F32x16& x) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}
MEDUSA_INLINE float max_of(const F32x16& x) {
  float largest = x[0];
  for (int i = 1; i < kLanes; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

}  // namespace medusa
