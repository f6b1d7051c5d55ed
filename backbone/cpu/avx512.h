// Sixteen floats at a time, and wrappers of the tile instructions: for the kernel files only, which
// are compiled for AVX-512 and AMX and run behind has_tile_kernels(). Everything here has internal
// linkage, so that no other file's code is ever replaced by a copy compiled for those instructions;
// for the same reason kernel files include no templates of the standard library.
// Empty in files that are compiled for other machines.
#pragma once

#if defined(__AVX512BF16__) && defined(__AMX_BF16__)

#include <immintrin.h>

#include <cstdint>

namespace medusa {
namespace {

constexpr int64_t kLanes = 16;

inline __m512 widen(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline __m512 load_bf16(const uint16_t* from) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
/// Rounds to the nearest, ties to even; numbers too small for a normal bfloat16 become 0.
inline __m256i to_bf16(__m512 x) {
  const __m256bh rounded = _mm512_cvtneps_pbh(x);
  __m256i bits;
  __builtin_memcpy(&bits, &rounded, sizeof bits);
  return bits;
}
inline void store_bf16(uint16_t* to, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_bf16(x));
}

/// The first `count` lanes, all of them from 16 on, none below 1.
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

/// Before tiles are loaded from memory that this function wrote: to the compiler a tile load is a
/// black box that reads nothing.
inline void finish_stores() { asm volatile("" ::: "memory"); }

}  // namespace
}  // namespace medusa

#endif
