// The loop over k that the AVX-512 engines share: sixteen outputs are the lanes of a register. For
// kernel files only (avx512.h).
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "backbone/cpu/avx512.h"
#include "backbone/cpu/tile_layout.h"

namespace medusa {
namespace {

/// Products of rows with bfloat16 weights. Every sum is one chain along k, so a row's bits do not
/// depend on the number of rows that are computed together.
///
/// Terms has the type Number of a row's numbers, and Word, which makes of a word of both blocks'
/// weights what add<kRows>() multiplies with two neighbouring numbers of each row.
template <typename Terms>
struct LaneEngine {
  using Number = typename Terms::Number;
  static constexpr int64_t kPassRows = 8;    // 8 rows · 2 blocks: 16 of the 32 registers are sums
  static constexpr int64_t kSweepRows = 64;  // rows that share one reading of the weights

  static void begin() {}
  static void end() {}

  /// The products of few rows are bound by memory, and the hardware's own prefetcher does not keep
  /// up. A single pass over a pair asks the second-level cache for what is read Terms::kAhead
  /// later; several passes share the work of asking for the whole next pair, or memory would idle
  /// in all but the first. (Measured at 8 rows: 53 products a nanosecond, 23 without any of it.)
  static void plan_prefetch(int64_t pass, int64_t num_passes, int64_t pair_size,
                            PairOperand& pair) {
    const int64_t next_pair = pair_size * 2;  // bytes
    pair.low_ahead = num_passes == 1 ? Terms::kAhead : pass == 0 ? next_pair : 0;
    pair.high_ahead = num_passes == 1 ? Terms::kAhead : pass == 1 ? next_pair : 0;
  }

  /// sums = rows · pairᵀ over `depth` tiles of k; kResume: added to what the sums hold. Computes at
  /// least Terms::kLeastRows, whatever those behind `num_rows` hold.
  template <bool kResume>
  static void multiply(const RowsOperand<Number>& rows, const PairOperand& pair, int64_t depth,
                       int64_t num_rows, const SumsTarget& sums) {
    switch (num_rows) {
      case 1:
        return multiply_rows<kResume, at_least(1)>(rows, pair, depth, sums);
      case 2:
        return multiply_rows<kResume, at_least(2)>(rows, pair, depth, sums);
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
  static constexpr int at_least(int num_rows) {
    return num_rows > Terms::kLeastRows ? num_rows : Terms::kLeastRows;
  }

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
#pragma GCC unroll 1  // or g++ 12 moves the prefetches of all words to the front
      for (int64_t word = 0; word < kTileDepth / 2; ++word) {
        prefetch<_MM_HINT_T1>(low_words, pair.low_ahead);
        prefetch<_MM_HINT_T1>(high_words, pair.high_ahead);
        prefetch<_MM_HINT_T0>(low_words, kNearPrefetch);
        prefetch<_MM_HINT_T0>(high_words, kNearPrefetch);
        const typename Terms::Word weights(_mm512_loadu_si512(low_words),
                                           _mm512_loadu_si512(high_words));
        weights.template add<kRows>(x, rows.row_stride, low, high);
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

  static constexpr int64_t kNearPrefetch = 1024;  // bytes: from the second-level cache to the first

  template <_mm_hint kHint>
  static void prefetch(const uint16_t* from, int64_t ahead) {
    _mm_prefetch(reinterpret_cast<const char*>(from) + ahead, kHint);
  }
};

}  // namespace
}  // namespace medusa

#endif
