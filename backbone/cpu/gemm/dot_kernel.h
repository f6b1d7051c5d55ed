// GEMMs with AVX512-BF16's dot product of two neighboring elements. For kernel files only
// (simd.h).
#pragma once

#if defined(__AVX512BF16__)

#include "backbone/cpu/gemm/simd_kernel.h"

namespace medusa {
namespace {

/// Rows are bfloat16, and two of their elements are one word, as two of a weight's are.
struct DotTraits {
  using Element = uint16_t;
  static constexpr int64_t kAhead =
      16384;  // bytes from what is read to what a single pass asks for
  // One row leaves the core so little to do that it reads ahead of what was asked for, and memory
  // answers slower: a step of one row took 12.5 ms and of two 9.6 (Zen 4; three gave most).
  static constexpr int kLeastRows = 3;
  static constexpr int kMr = 8;  // as FmaTraits'
  static constexpr int kPairRows = kMr;

  struct Word {
    __m512bh low_words, high_words;

    Word(const uint16_t* low, const uint16_t* high)
        : low_words(reinterpret_cast<__m512bh>(_mm512_loadu_si512(low))),
          high_words(reinterpret_cast<__m512bh>(_mm512_loadu_si512(high))) {}

    template <int kRows>
    void add(const Element* x, int64_t row_stride, __m512 (&low)[kRows],
             __m512 (&high)[kRows]) const {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        int32_t both;
        __builtin_memcpy(&both, x + r * row_stride, sizeof both);
        const auto factors = reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
        low[r] = _mm512_dpbf16_ps(low[r], factors, low_words);
        high[r] = _mm512_dpbf16_ps(high[r], factors, high_words);
      }
    }
  };
};

struct DotKernel : SimdKernel<DotTraits> {
  static constexpr const char* kName = "AVX512-BF16 dot products";

  static void store(Element* to, __m512 x) { store_bf16(to, x); }
  static Element from_bf16(uint16_t bits) { return bits; }
};

}  // namespace
}  // namespace medusa

#endif
