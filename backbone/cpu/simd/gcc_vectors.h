// Sixteen floats at a time, as simd.h says, in parts as wide as the processor's registers: two
// with AVX2 and fused multiply-add, four without. The parts are vector types of the compiler (g++,
// clang), so that the same code runs on any processor. For kernel files only (simd.h).
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
constexpr int kVecBytes = 32;
#else
constexpr int kVecBytes = 16;
#endif
constexpr int kVecLanes = kVecBytes / 4;
constexpr int kVecs = static_cast<int>(kLanes) / kVecLanes;

using Vec = float __attribute__((vector_size(kVecBytes)));
using I32Vec = int32_t __attribute__((vector_size(kVecBytes)));
using U32Vec = uint32_t __attribute__((vector_size(kVecBytes)));
using U16Vec = uint16_t __attribute__((vector_size(kVecBytes / 2)));

template <typename To, typename From>
inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

/// A part from any address, of numbers of its type.
template <typename P>
inline P load_vec(const void* from) {
  P x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

inline Vec splat_vec(float x) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_set1_ps(x);
#else
  return Vec{x, x, x, x};
#endif
}

/// a * b + c. One rounding with FMA, two without.
inline Vec multiply_add_vec(Vec a, Vec b, Vec c) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

struct F32x16 {
  Vec vecs[kVecs];
};

/// The numbers that f(i) gives for part i.
template <typename MakeVec>
inline F32x16 make_f32x16(const MakeVec& f) {
  F32x16 y;
#pragma GCC unroll 4
  for (int i = 0; i < kVecs; ++i) y.vecs[i] = f(i);
  return y;
}

inline F32x16 operator+(const F32x16& a, const F32x16& b) {
  return make_f32x16([&](int i) { return a.vecs[i] + b.vecs[i]; });
}
inline F32x16 operator-(const F32x16& a, const F32x16& b) {
  return make_f32x16([&](int i) { return a.vecs[i] - b.vecs[i]; });
}
inline F32x16 operator*(const F32x16& a, const F32x16& b) {
  return make_f32x16([&](int i) { return a.vecs[i] * b.vecs[i]; });
}
inline F32x16 operator/(const F32x16& a, const F32x16& b) {
  return make_f32x16([&](int i) { return a.vecs[i] / b.vecs[i]; });
}

inline F32x16 load_f32(const float* from) {
  return make_f32x16([&](int i) { return load_vec<Vec>(from + i * kVecLanes); });
}
inline void store_f32(float* to, const F32x16& x) { __builtin_memcpy(to, &x, sizeof x); }
inline F32x16 splat(float x) {
  return make_f32x16([&](int) { return splat_vec(x); });
}

inline F32x16 multiply_add(const F32x16& a, const F32x16& b, const F32x16& c) {
  return make_f32x16([&](int i) { return multiply_add_vec(a.vecs[i], b.vecs[i], c.vecs[i]); });
}
inline F32x16 multiply_subtract(const F32x16& a, const F32x16& b, const F32x16& c) {
  return make_f32x16([&](int i) { return multiply_add_vec(a.vecs[i], b.vecs[i], -c.vecs[i]); });
}
inline F32x16 larger(const F32x16& a, const F32x16& b) {
  return make_f32x16([&](int i) { return a.vecs[i] > b.vecs[i] ? a.vecs[i] : b.vecs[i]; });
}

inline float largest_of(const F32x16& x) {
  float lanes[kLanes];
  store_f32(lanes, x);
  float largest = lanes[0];
  for (int i = 1; i < kLanes; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}
/// Halves are added to each other, as _mm512_reduce_add_ps does.
inline float sum_of(const F32x16& x) {
  float lanes[kLanes];
  store_f32(lanes, x);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

inline int64_t lanes_of(int64_t count) { return count < 0 ? 0 : count < kLanes ? count : kLanes; }
inline F32x16 load_first(const float* from, int64_t count) {
  if (count >= kLanes) return load_f32(from);
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < lanes_of(count); ++i) lanes[i] = from[i];
  return load_f32(lanes);
}
inline void store_first(float* to, const F32x16& x, int64_t count) {
  if (count >= kLanes) return store_f32(to, x);
  float lanes[kLanes];
  store_f32(lanes, x);
  for (int64_t i = 0; i < lanes_of(count); ++i) to[i] = lanes[i];
}

inline F32x16 load_bf16(const uint16_t* from) {
  return make_f32x16([&](int i) {
    const auto halves = load_vec<U16Vec>(from + i * kVecLanes);
    return bits_as<Vec>(__builtin_convertvector(halves, U32Vec) << 16);
  });
}
inline void store_bf16(uint16_t* to, const F32x16& x) {
#pragma GCC unroll 4
  for (int i = 0; i < kVecs; ++i) {
    auto bits = bits_as<U32Vec>(x.vecs[i]);  // finite values only
    bits += 0x7FFF + (bits >> 16 & 1);
    const U16Vec halves = __builtin_convertvector(bits >> 16, U16Vec);
    __builtin_memcpy(to + i * kVecLanes, &halves, sizeof halves);
  }
}

/// float32 of the halves of a part, finite ones.
inline Vec upcast_halves(const uint8_t* from) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_cvtph_ps(load_vec<__m128i>(from));
#else
  const U32Vec bits = __builtin_convertvector(load_vec<U16Vec>(from), U32Vec);
  const Vec magnitude = bits_as<Vec>((bits & 0x7FFF) << 13) * 0x1p112F;  // the exponent's bias
  return bits_as<Vec>(bits_as<U32Vec>(magnitude) | (bits & 0x8000) << 16);
#endif
}
inline F32x16 load_halves(const uint8_t* from) {
  return make_f32x16([&](int i) { return upcast_halves(from + i * kVecLanes * 2); });
}

inline void store_halves(uint16_t* to, const F32x16& x, bool odd) {
  uint16_t bits[kLanes];
  store_bf16(bits, x);
  for (int64_t i = 0; i < kLanes; ++i) to[2 * i + (odd ? 1 : 0)] = bits[i];
}

inline void scatter_words(uint16_t* to, const F32x16& low, const F32x16& high, int64_t half) {
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

inline Words upcast_words(const uint16_t* from) {
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
inline Vec exp2_of_vec(Vec x) {
  const Vec least = splat_vec(-252.0F);  // less than half of the least number above 0
  x = x > least ? x : least;
  const Vec shifted = x + kRounding, whole = shifted - kRounding, f = x - whole;
  Vec p = splat_vec(kExp2Series[0]);
#pragma GCC unroll 8
  for (int i = 1; i < kExp2Terms; ++i) p = multiply_add_vec(p, f, splat_vec(kExp2Series[i]));
  // Two powers of two, of which each is a number above 2^-127: only the second product may round.
  const I32Vec power = bits_as<I32Vec>(shifted) - bits_as<int32_t>(kRounding);
  const I32Vec first = power >> 1, second = power - first;
  return p * bits_as<Vec>((first + 127) << 23) * bits_as<Vec>((second + 127) << 23);
}
inline F32x16 exp2_of(const F32x16& x) {
  return make_f32x16([&](int i) { return exp2_of_vec(x.vecs[i]); });
}

}  // namespace
}  // namespace medusa
