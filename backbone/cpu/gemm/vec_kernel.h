// GEMMs without AVX-512: with AVX2's fused multiply-add, or in plain C++ for any processor. For
// kernel files only (simd.h).
#pragma once

#if !defined(__AVX512BW__)

#include "backbone/cpu/gemm/simd_kernel.h"

namespace medusa {
namespace {

/// Rows are float32, not rounded, and weights are upcast to it.
struct VecTraits {
  using Element = float;
  static constexpr int64_t kAhead = 8192;  // as FmaTraits'
  static constexpr int kLeastRows = 1;
  // Of 16 registers, sums of a pair take four a row with AVX2, eight without. (Three rows should
  // fit, but g++ 12 spills: 24 multiply-adds a nanosecond, 47 with two, of 54 that the core can
  // do.)
  static constexpr int kPairRows = kVecs == 2 ? 2 : 1;
  static constexpr int kMr = kVecs == 2 ? 6 : 1;

  /// A word holds the bfloat16 elements of an even and the next odd k: lower and upper half.
  struct Word {
    const uint16_t *low_words, *high_words;

    Word(const uint16_t* low, const uint16_t* high) : low_words(low), high_words(high) {}

    template <int kRows>
    void add(const Element* x, int64_t row_stride, F32x16 (&low)[kRows],
             F32x16 (&high)[kRows]) const {
      accumulate<kRows, false>(x, row_stride, low, high);
      accumulate<kRows, true>(x + 1, row_stride, low, high);
    }

   private:
    template <int kRows, bool kOdd>
    void accumulate(const Element* x, int64_t row_stride, F32x16 (&low)[kRows],
                    F32x16 (&high)[kRows]) const {
      Vec factors[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) factors[r] = splat_vec(x[r * row_stride]);
#pragma GCC unroll 4
      for (int i = 0; i < kVecs; ++i) {
        const Vec a = elements<kOdd>(low_words, i);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
          low[r].vecs[i] = multiply_add_vec(factors[r], a, low[r].vecs[i]);
        const Vec b = elements<kOdd>(high_words, i);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
          high[r].vecs[i] = multiply_add_vec(factors[r], b, high[r].vecs[i]);
      }
    }
  };

  struct PanelWord {
    const uint16_t* words;

    explicit PanelWord(const uint16_t* from) : words(from) {}

    template <int kRows>
    void add(const Element* x, int64_t row_stride, F32x16 (&sums)[kRows]) const {
      accumulate<kRows, false>(x, row_stride, sums);
      accumulate<kRows, true>(x + 1, row_stride, sums);
    }

   private:
    template <int kRows, bool kOdd>
    void accumulate(const Element* x, int64_t row_stride, F32x16 (&sums)[kRows]) const {
      Vec weights[kVecs];
#pragma GCC unroll 4
      for (int i = 0; i < kVecs; ++i) weights[i] = elements<kOdd>(words, i);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vec factor = splat_vec(x[r * row_stride]);
#pragma GCC unroll 4
        for (int i = 0; i < kVecs; ++i)
          sums[r].vecs[i] = multiply_add_vec(factor, weights[i], sums[r].vecs[i]);
      }
    }
  };

 private:
  template <bool kOdd>
  static Vec elements(const uint16_t* words, int i) {
    const auto vec = load_vec<U32Vec>(words + i * 2 * kVecLanes);
    return bits_as<Vec>(kOdd ? vec & 0xFFFF0000U : vec << 16);
  }
};

struct VecKernel : SimdKernel<VecTraits> {
  static constexpr const char* kName =
      kVecs == 2 ? "AVX2, bfloat16 weights" : "plain C++, bfloat16 weights";

  static void store(Element* to, const F32x16& x) { store_f32(to, x); }
  static Element from_bf16(uint16_t bits) {
    return bits_as<Element>(static_cast<uint32_t>(bits) << 16);
  }
};

}  // namespace
}  // namespace medusa

#endif
