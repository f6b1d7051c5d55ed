// Products without AVX-512: with AVX2's fused multiply-add, or in plain C++ for any processor. For
// kernel files only (lanes.h).
#pragma once

#if !defined(__AVX512BW__)

#include "backbone/cpu/gemm/lane_engine.h"

namespace medusa {
namespace {

/// Rows are float32, not rounded, and weights are widened to it.
struct PartTerms {
  using Number = float;
  static constexpr int64_t kAhead = 8192;  // as WidenedTerms'
  static constexpr int kLeastRows = 1;
  // Of 16 registers, sums of a pair take four a row with AVX2, eight without. (Three rows should
  // fit, but g++ 12 spills: 24 products a nanosecond, 47 with two, of 54 that the core can do.)
  static constexpr int kPairRows = kParts == 2 ? 2 : 1;
  static constexpr int kPassRows = kParts == 2 ? 6 : 1;

  /// A word holds the bfloat16 numbers of an even and the next odd k: lower and upper half.
  struct Word {
    const uint16_t *low_words, *high_words;

    Word(const uint16_t* low, const uint16_t* high) : low_words(low), high_words(high) {}

    template <int kRows>
    void add(const Number* x, int64_t row_stride, Floats (&low)[kRows],
             Floats (&high)[kRows]) const {
      add_products<kRows, false>(x, row_stride, low, high);
      add_products<kRows, true>(x + 1, row_stride, low, high);
    }

   private:
    template <int kRows, bool kOdd>
    void add_products(const Number* x, int64_t row_stride, Floats (&low)[kRows],
                      Floats (&high)[kRows]) const {
      Part factors[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) factors[r] = all_of_part(x[r * row_stride]);
#pragma GCC unroll 4
      for (int i = 0; i < kParts; ++i) {
        const Part a = numbers<kOdd>(low_words, i);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
          low[r].parts[i] = multiply_add_part(factors[r], a, low[r].parts[i]);
        const Part b = numbers<kOdd>(high_words, i);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
          high[r].parts[i] = multiply_add_part(factors[r], b, high[r].parts[i]);
      }
    }
  };

  struct BlockWord {
    const uint16_t* words;

    explicit BlockWord(const uint16_t* from) : words(from) {}

    template <int kRows>
    void add(const Number* x, int64_t row_stride, Floats (&sums)[kRows]) const {
      add_products<kRows, false>(x, row_stride, sums);
      add_products<kRows, true>(x + 1, row_stride, sums);
    }

   private:
    template <int kRows, bool kOdd>
    void add_products(const Number* x, int64_t row_stride, Floats (&sums)[kRows]) const {
      Part weights[kParts];
#pragma GCC unroll 4
      for (int i = 0; i < kParts; ++i) weights[i] = numbers<kOdd>(words, i);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Part factor = all_of_part(x[r * row_stride]);
#pragma GCC unroll 4
        for (int i = 0; i < kParts; ++i)
          sums[r].parts[i] = multiply_add_part(factor, weights[i], sums[r].parts[i]);
      }
    }
  };

 private:
  template <bool kOdd>
  static Part numbers(const uint16_t* words, int i) {
    const auto part = load_part<WordPart>(words + i * 2 * kPartLanes);
    return bits_as<Part>(kOdd ? part & 0xFFFF0000U : part << 16);
  }
};

struct PartEngine : LaneEngine<PartTerms> {
  static constexpr const char* kName =
      kParts == 2 ? "AVX2, bfloat16 weights" : "plain C++, bfloat16 weights";

  static void store(Number* to, const Floats& x) { store_floats(to, x); }
  static Number from_bf16(uint16_t bits) {
    return bits_as<Number>(static_cast<uint32_t>(bits) << 16);
  }
};

}  // namespace
}  // namespace medusa

#endif
