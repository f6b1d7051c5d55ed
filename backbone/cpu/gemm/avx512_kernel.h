// GEMMs with AVX-512's float32 multiply-add. For kernel files only (simd.h).
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "backbone/cpu/gemm/simd_kernel.h"

namespace medusa {
namespace {

/// Rows are float32, not rounded, and weights are upcast to it.
struct FmaTraits {
  using Element = float;
  static constexpr int64_t kAhead = 8192;  // bytes from what is read to what a single pass asks for
  static constexpr int kLeastRows = 1;
  static constexpr int kMr = 8;  // 8 rows · 2 blocks: 16 of the 32 registers are sums
  static constexpr int kPairRows = kMr;

  /// A word holds the bfloat16 elements of an even and the next odd k: lower and upper half.
  struct Word {
    __m512 low_even, high_even, low_odd, high_odd;

    Word(const uint16_t* low, const uint16_t* high) {
      const __m512i low_words = _mm512_loadu_si512(low), high_words = _mm512_loadu_si512(high);
      low_even = even_elements(low_words);
      high_even = even_elements(high_words);
      low_odd = odd_elements(low_words);
      high_odd = odd_elements(high_words);
    }

    template <int kRows>
    void add(const Element* x, int64_t row_stride, __m512 (&low)[kRows],
             __m512 (&high)[kRows]) const {
      accumulate<kRows>(x, row_stride, low_even, high_even, low, high);
      accumulate<kRows>(x + 1, row_stride, low_odd, high_odd, low, high);
    }
  };

 private:
  template <int kRows>
  static void accumulate(const Element* x, int64_t row_stride, __m512 a, __m512 b,
                         __m512 (&low)[kRows], __m512 (&high)[kRows]) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(x[r * row_stride]);
      low[r] = _mm512_fmadd_ps(factor, a, low[r]);
      high[r] = _mm512_fmadd_ps(factor, b, high[r]);
    }
  }

  static __m512 even_elements(__m512i words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
  }
  static __m512 odd_elements(__m512i words) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
    return _mm512_castsi512_ps(_mm512_and_si512(words, upper));
  }
};

struct Avx512Kernel : SimdKernel<FmaTraits> {
  static constexpr const char* kName = "AVX-512, bfloat16 weights";

  static void store(Element* to, __m512 x) { _mm512_storeu_ps(to, x); }
  static Element from_bf16(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    Element x;
    __builtin_memcpy(&x, &wide, sizeof x);
    return x;
  }
};

}  // namespace
}  // namespace medusa

#endif
