// Sixteen floats at a time with AVX-512, as simd.h says. Empty in files that are not compiled for
// it.
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include <immintrin.h>

#include <cstdint>

#include "backbone/cpu/simd/exp2_series.h"

namespace medusa {
namespace {

constexpr int64_t kLanes = 16;

using F32x16 = __m512;

inline F32x16 load_f32(const float* from) { return _mm512_loadu_ps(from); }
inline void store_f32(float* to, F32x16 x) { _mm512_storeu_ps(to, x); }
inline F32x16 splat(float x) { return _mm512_set1_ps(x); }
inline F32x16 multiply_add(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmadd_ps(a, b, c); }
inline F32x16 multiply_subtract(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmsub_ps(a, b, c); }
inline F32x16 larger(F32x16 a, F32x16 b) { return _mm512_max_ps(a, b); }
inline float largest_of(F32x16 x) { return _mm512_reduce_max_ps(x); }
inline float sum_of(F32x16 x) { return _mm512_reduce_add_ps(x); }

/// The first `count` lanes: all from 16 on, none below 1.
inline __mmask16 first_lanes(int64_t count) {
  if (count >= kLanes) return 0xFFFF;
  return count <= 0 ? __mmask16{0} : static_cast<__mmask16>((1U << count) - 1);
}
inline F32x16 load_first(const float* from, int64_t count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), from);
}
inline void store_first(float* to, F32x16 x, int64_t count) {
  _mm512_mask_storeu_ps(to, first_lanes(count), x);
}

inline __m512 load_bf16(const uint16_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// bfloat16 bits, rounded to the nearest, ties to even; finite values only.
inline __m256i to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
inline void store_bf16(uint16_t* to, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_bf16(x));
}

inline void store_halves(uint16_t* to, F32x16 x, bool odd) {
  const __m512i words = _mm512_cvtepu16_epi32(to_bf16(x));
  _mm512_mask_storeu_epi16(to, odd ? 0xAAAAAAAA : 0x55555555,
                           odd ? _mm512_slli_epi32(words, 16) : words);
}

inline void scatter_words(uint16_t* to, F32x16 low, F32x16 high, int64_t half) {
  const __m512i words = _mm512_inserti64x4(_mm512_castsi256_si512(to_bf16(low)), to_bf16(high), 1);
  const __m512i lane =
      _mm512_setr_epi32(0, 16, 32, 48, 64, 80, 96, 112, 0, 16, 32, 48, 64, 80, 96, 112);
  const __m512i index =
      _mm512_mask_add_epi32(lane, 0xFF00, lane, _mm512_set1_epi32(static_cast<int>(half)));
  _mm512_i32scatter_epi32(to, index, words, 4);
}

using Words = __m512i;

inline Words upcast_words(const uint16_t* from) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Words half_words(const uint16_t* words, bool odd) {
  const __m512i both = _mm512_loadu_si512(words);
  return odd ? _mm512_srli_epi32(both, 16) : _mm512_and_si512(both, _mm512_set1_epi32(0xFFFF));
}
inline void store_words(uint16_t* to, Words low, Words high) {
  _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

/// 2^x for x <= 127; 0 far below -126.
inline __m512 exp2_of(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(x, whole);
  __m512 p = _mm512_set1_ps(kExp2Series[0]);
#pragma GCC unroll 8
  for (int i = 1; i < kExp2Terms; ++i) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(kExp2Series[i]));
  return _mm512_scalef_ps(p, whole);
}

}  // namespace
}  // namespace medusa

#endif
