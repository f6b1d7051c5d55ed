// Sixteen floats at a time: for the kernel files only, which are compiled for AVX-512 and run
// behind has_avx512(). Everything here and in the other *_loop.h and *_engine.h has internal
// linkage, so that no other file's code is ever replaced by a copy compiled for those instructions;
// for the same reason they include no templates of the standard library. They are empty in other
// files.
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include <immintrin.h>

#include <cstdint>

namespace medusa {
namespace {

constexpr int64_t kLanes = 16;

inline __m512 load_bf16(const uint16_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// bfloat16 bits, rounded to the nearest, ties to even; finite numbers only.
inline __m256i to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
inline void store_bf16(uint16_t* to, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_bf16(x));
}

/// The first `count` lanes: all from 16 on, none below 1.
inline __mmask16 first_lanes(int64_t count) {
  if (count >= kLanes) return 0xFFFF;
  return count <= 0 ? __mmask16{0} : static_cast<__mmask16>((1U << count) - 1);
}

/// 2^x for x <= 127, relative error below 3e-7; 0 far below -126. Taylor's series on [-0.5, 0.5].
inline __m512 exp2_of(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(x, whole);
  __m512 p = _mm512_set1_ps(1.5403530e-4F);  // ln(2)^i / i! for i = 6, 5, …, 0
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.3333558e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.6181291e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.5504109e-2F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.4022651e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.9314718e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, whole);
}

constexpr float kLog2E = 1.44269504F;

/// x / (1 + e^-x)
inline __m512 silu(__m512 x) {
  const __m512 bounded = _mm512_max_ps(x, _mm512_set1_ps(-80.0F));  // keeps e^-x finite
  const __m512 e = exp2_of(_mm512_mul_ps(bounded, _mm512_set1_ps(-kLog2E)));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0F), e));
}

}  // namespace
}  // namespace medusa

#endif
