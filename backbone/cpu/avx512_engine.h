// Products with AVX-512's float32 multiply-add. For kernel files only (avx512.h).
//
// AVX512-BF16's dot product would take bfloat16 rows as they are, but it issues every second cycle
// where two multiply-adds issue in each: half the speed (measured on Emerald Rapids).
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "backbone/cpu/avx512.h"
#include "backbone/cpu/tile_layout.h"

namespace medusa {
namespace {

/// Rows are float32, not rounded. Every sum is one chain along k, so a row's bits do not depend on
/// the number of rows that are computed together.
struct Avx512Engine {
  using Number = float;
  static constexpr const char* kName = "AVX-512, bfloat16 weights";
  static constexpr int64_t kPassRows = 8;    // 8 rows · 2 blocks: 16 of the 32 registers are sums
  static constexpr int64_t kSweepRows = 64;  // rows that share one reading of the weights

  static void store(Number* to, __m512 x) { _mm512_storeu_ps(to, x); }
  static Number from_bf16(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    Number x;
    __builtin_memcpy(&x, &wide, sizeof x);
    return x;
  }

  static void begin() {}
  static void end() {}

  /// The products of few rows are bound by memory, and the hardware's own prefetcher does not keep
  /// up. A single pass over a pair asks the second-level cache for what is read 8 KB later; several
  /// passes share the work of asking for the whole next pair, or memory would idle in all but the
  /// first. (Measured at 8 rows: 53 products a nanosecond, 23 without any of it.)
  static void plan_prefetch(int64_t pass, int64_t num_passes, int64_t pair_size,
                            PairOperand& pair) {
    const int64_t next_pair = pair_size * 2;  // bytes
    pair.low_ahead = num_passes == 1 ? 8192 : pass == 0 ? next_pair : 0;
    pair.high_ahead = num_passes == 1 ? 8192 : pass == 1 ? next_pair : 0;
  }

  /// sums = rows · pairᵀ over `depth` tiles of k; kResume: added to what the sums hold.
  template <bool kResume>
  static void multiply(const RowsOperand<Number>& rows, const PairOperand& pair, int64_t depth,
                       int64_t num_rows, const SumsTarget& sums) {
    switch (num_rows) {
      case 1:
        return multiply_rows<kResume, 1>(rows, pair, depth, sums);
      case 2:
        return multiply_rows<kResume, 2>(rows, pair, depth, sums);
      case 3:
        return multiply_rows<kResume, 3>(rows, pair, depth, sums);
      case 4:
        return multiply_rows<kResume, 4>(rows, pair, depth, sums);
      case 5:
        return multiply_rows<kResume, 5>(rows, pair, depth, sums);
      case 6:
        return multiply_rows<kResume, 6>(rows, pair, depth, sums);
      case 7:
        return multiply_rows<kResume, 7>(rows, pair, depth, sums);
      default:
        return multiply_rows<kResume, 8>(rows, pair, depth, sums);
    }
  }

 private:
  template <bool kResume, int kRows>
  static void multiply_rows(const RowsOperand<Number>& rows, const PairOperand& pair, int64_t depth,
                            const SumsTarget& sums) {
    __m512 low[kRows], high[kRows];
    for (int r = 0; r < kRows; ++r) {
      low[r] = kResume ? _mm512_loadu_ps(sums.low + r * sums.row_stride) : _mm512_setzero_ps();
      high[r] = kResume ? _mm512_loadu_ps(sums.high + r * sums.row_stride) : _mm512_setzero_ps();
    }
    for (int64_t d = 0; d < depth; ++d) {
      const Number* x = rows.data + d * rows.tile_stride;
      const uint16_t* low_words = pair.low + d * pair.tile_stride;
      const uint16_t* high_words = pair.high + d * pair.tile_stride;
      for (int64_t word = 0; word < kTileDepth / 2; ++word) {
        prefetch<_MM_HINT_T1>(low_words, pair.low_ahead);
        prefetch<_MM_HINT_T1>(high_words, pair.high_ahead);
        prefetch<_MM_HINT_T0>(low_words, kNearPrefetch);
        prefetch<_MM_HINT_T0>(high_words, kNearPrefetch);
        const __m512i a = _mm512_loadu_si512(low_words), b = _mm512_loadu_si512(high_words);
        add_products<kRows>(x, rows.row_stride, even_numbers(a), even_numbers(b), low, high);
        add_products<kRows>(x + 1, rows.row_stride, odd_numbers(a), odd_numbers(b), low, high);
        x += 2;
        low_words += pair.word_stride;
        high_words += pair.word_stride;
      }
    }
    for (int r = 0; r < kRows; ++r) {
      _mm512_storeu_ps(sums.low + r * sums.row_stride, low[r]);
      _mm512_storeu_ps(sums.high + r * sums.row_stride, high[r]);
    }
  }

  template <int kRows>
  static void add_products(const Number* x, int64_t row_stride, __m512 a, __m512 b,
                           __m512 (&low)[kRows], __m512 (&high)[kRows]) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(x[r * row_stride]);
      low[r] = _mm512_fmadd_ps(factor, a, low[r]);
      high[r] = _mm512_fmadd_ps(factor, b, high[r]);
    }
  }

  // A word holds the bfloat16 numbers of an even and the next odd k: lower and upper half.
  static __m512 even_numbers(__m512i words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
  }
  static __m512 odd_numbers(__m512i words) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
    return _mm512_castsi512_ps(_mm512_and_si512(words, upper));
  }

  static constexpr int64_t kNearPrefetch = 1024;  // bytes: from the second-level cache to the first

  template <_mm_hint kHint>
  static void prefetch(const uint16_t* from, int64_t ahead) {
    _mm_prefetch(reinterpret_cast<const char*>(from) + ahead, kHint);
  }
};

}  // namespace
}  // namespace medusa

#endif
