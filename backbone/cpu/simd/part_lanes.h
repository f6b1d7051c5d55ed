// Sixteen floats at a time, as lanes.h says, in parts as wide as the processor's registers: two
// with AVX2 and fused multiply-add, four without. The parts are vector types of the compiler (g++,
// clang), so that the same code runs on any processor. For kernel files only (lanes.h).
#pragma once

#include <cstdint>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

#include "backbone/cpu/simd/exp2_series.h"

namespace medusa {
namespace {

constexpr int64_t kLanes = 16;

#if defined(__AVX2__) && defined(__FMA__)
constexpr int kPartBytes = 32;
#else
constexpr int kPartBytes = 16;
#endif
constexpr int kPartLanes = kPartBytes / 4;
constexpr int kParts = static_cast<int>(kLanes) / kPartLanes;

using Part = float __attribute__((vector_size(kPartBytes)));
using IntPart = int32_t __attribute__((vector_size(kPartBytes)));
using WordPart = uint32_t __attribute__((vector_size(kPartBytes)));
using HalfPart = uint16_t __attribute__((vector_size(kPartBytes / 2)));

template <typename To, typename From>
inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

/// A part from any address, of numbers of its type.
template <typename P>
inline P load_part(const void* from) {
  P x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

inline Part all_of_part(float x) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_set1_ps(x);
#else
  return Part{x, x, x, x};
#endif
}

/// a * b + c. One rounding with FMA, two without.
inline Part multiply_add_part(Part a, Part b, Part c) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

struct Floats {
  Part parts[kParts];
};

/// The numbers that f(i) gives for part i.
template <typename MakePart>
inline Floats make_floats(const MakePart& f) {
  Floats y;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) y.parts[i] = f(i);
  return y;
}

inline Floats operator+(const Floats& a, const Floats& b) {
  return make_floats([&](int i) { return a.parts[i] + b.parts[i]; });
}
inline Floats operator-(const Floats& a, const Floats& b) {
  return make_floats([&](int i) { return a.parts[i] - b.parts[i]; });
}
inline Floats operator*(const Floats& a, const Floats& b) {
  return make_floats([&](int i) { return a.parts[i] * b.parts[i]; });
}
inline Floats operator/(const Floats& a, const Floats& b) {
  return make_floats([&](int i) { return a.parts[i] / b.parts[i]; });
}

inline Floats load_floats(const float* from) {
  return make_floats([&](int i) { return load_part<Part>(from + i * kPartLanes); });
}
inline void store_floats(float* to, const Floats& x) { __builtin_memcpy(to, &x, sizeof x); }
inline Floats all_lanes(float x) {
  return make_floats([&](int) { return all_of_part(x); });
}

inline Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
  return make_floats([&](int i) { return multiply_add_part(a.parts[i], b.parts[i], c.parts[i]); });
}
inline Floats multiply_subtract(const Floats& a, const Floats& b, const Floats& c) {
  return make_floats([&](int i) { return multiply_add_part(a.parts[i], b.parts[i], -c.parts[i]); });
}
inline Floats larger(const Floats& a, const Floats& b) {
  return make_floats([&](int i) { return a.parts[i] > b.parts[i] ? a.parts[i] : b.parts[i]; });
}

inline float largest_of(const Floats& x) {
  float lanes[kLanes];
  store_floats(lanes, x);
  float largest = lanes[0];
  for (int i = 1; i < kLanes; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}
/// Halves are added to each other, as _mm512_reduce_add_ps does.
inline float sum_of(const Floats& x) {
  float lanes[kLanes];
  store_floats(lanes, x);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

inline int64_t lanes_of(int64_t count) { return count < 0 ? 0 : count < kLanes ? count : kLanes; }
inline Floats load_first(const float* from, int64_t count) {
  if (count >= kLanes) return load_floats(from);
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < lanes_of(count); ++i) lanes[i] = from[i];
  return load_floats(lanes);
}
inline void store_first(float* to, const Floats& x, int64_t count) {
  if (count >= kLanes) return store_floats(to, x);
  float lanes[kLanes];
  store_floats(lanes, x);
  for (int64_t i = 0; i < lanes_of(count); ++i) to[i] = lanes[i];
}

inline Floats load_bf16(const uint16_t* from) {
  return make_floats([&](int i) {
    const auto halves = load_part<HalfPart>(from + i * kPartLanes);
    return bits_as<Part>(__builtin_convertvector(halves, WordPart) << 16);
  });
}
inline void store_bf16(uint16_t* to, const Floats& x) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    auto bits = bits_as<WordPart>(x.parts[i]);  // finite numbers only
    bits += 0x7FFF + (bits >> 16 & 1);
    const HalfPart halves = __builtin_convertvector(bits >> 16, HalfPart);
    __builtin_memcpy(to + i * kPartLanes, &halves, sizeof halves);
  }
}

/// float32 of the halves of a part, finite ones.
inline Part widen_halves(const uint8_t* from) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_cvtph_ps(load_part<__m128i>(from));
#else
  const WordPart bits = __builtin_convertvector(load_part<HalfPart>(from), WordPart);
  const Part magnitude = bits_as<Part>((bits & 0x7FFF) << 13) * 0x1p112F;  // the exponent's bias
  return bits_as<Part>(bits_as<WordPart>(magnitude) | (bits & 0x8000) << 16);
#endif
}
inline Floats load_halves(const uint8_t* from) {
  return make_floats([&](int i) { return widen_halves(from + i * kPartLanes * 2); });
}

inline void store_halves(uint16_t* to, const Floats& x, bool odd) {
  uint16_t bits[kLanes];
  store_bf16(bits, x);
  for (int64_t i = 0; i < kLanes; ++i) to[2 * i + (odd ? 1 : 0)] = bits[i];
}

inline void scatter_words(uint16_t* to, const Floats& low, const Floats& high, int64_t half) {
  uint16_t bits[kLanes];
  for (int second = 0; second < 2; ++second) {
    store_bf16(bits, second == 0 ? low : high);
    for (int64_t word = 0; word < kLanes / 2; ++word) {
      uint16_t* place = to + 2 * (second * half + 16 * word);
      place[0] = bits[2 * word];
      place[1] = bits[2 * word + 1];
    }
  }
}

struct Words {
  uint32_t lanes[kLanes];
};

inline Words widen_words(const uint16_t* from) {
  Words x;
  for (int64_t i = 0; i < kLanes; ++i) x.lanes[i] = from[i];
  return x;
}
inline Words half_words(const uint16_t* words, bool odd) {
  Words x;
  for (int64_t i = 0; i < kLanes; ++i) x.lanes[i] = words[2 * i + (odd ? 1 : 0)];
  return x;
}
inline void store_words(uint16_t* to, const Words& low, const Words& high) {
  for (int64_t i = 0; i < kLanes; ++i) {
    to[2 * i] = static_cast<uint16_t>(low.lanes[i]);
    to[2 * i + 1] = static_cast<uint16_t>(high.lanes[i]);
  }
}

constexpr float kRounding = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number

/// 2^x for x <= 127; 0 far below -126.
inline Part exp2_of_part(Part x) {
  const Part least = all_of_part(-252.0F);  // less than half of the least number above 0
  x = x > least ? x : least;
  const Part shifted = x + kRounding, whole = shifted - kRounding, f = x - whole;
  Part p = all_of_part(kExp2Series[0]);
#pragma GCC unroll 8
  for (int i = 1; i < kExp2Terms; ++i) p = multiply_add_part(p, f, all_of_part(kExp2Series[i]));
  // Two powers of two, of which each is a number above 2^-127: only the second product may round.
  const IntPart power = bits_as<IntPart>(shifted) - bits_as<int32_t>(kRounding);
  const IntPart first = power >> 1, second = power - first;
  return p * bits_as<Part>((first + 127) << 23) * bits_as<Part>((second + 127) << 23);
}
inline Floats exp2_of(const Floats& x) {
  return make_floats([&](int i) { return exp2_of_part(x.parts[i]); });
}

}  // namespace
}  // namespace medusa
