// The loop over k that all kernels without tiles share: sixteen outputs are the lanes of a F32x16.
// For kernel files only (simd.h).
#pragma once

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/simd/simd.h"

namespace medusa {
namespace {

/// GEMMs of rows with bfloat16 weights. Every sum is one chain along k, so a row's bits do not
/// depend on the number of rows that are computed together.
///
/// Traits has the type Element of a row's elements, kMr, the most rows whose sums fit into the
/// registers, and Word, which makes of a word of both blocks' weights what add<kRows>() multiplies
/// with two neighboring elements of each row. Where the sums of more than kPairRows rows fit for
/// one block only, the blocks are read one after the other, and PanelWord is the same for one.
template <typename Traits>
struct SimdKernel {
  using Element = typename Traits::Element;
  static constexpr int64_t kMr = Traits::kMr;
  static constexpr int64_t kMc = 64;  // rows that share one reading of the weights

  static void begin() {}
  static void end() {}

  /// Skinny GEMMs are bound by memory, and the hardware's own prefetcher does not keep
  /// up. A single pass over a pair asks the second-level cache for what is read Traits::kAhead
  /// later; several passes share the work of asking for the whole next pair, or memory would idle
  /// in all but the first. (Measured at 8 rows: 53 multiply-adds a nanosecond, 23 without any of
  /// it.) A single pass that reads the blocks one after the other asks for the other one each time.
  static void plan_prefetch(int64_t call, int64_t num_calls, int64_t num_rows, int64_t pair_size,
                            PairOperand& pair) {
    const int64_t next_pair = pair_size * 2;  // bytes
    if (num_calls == 1 && num_rows > Traits::kPairRows) {
      pair.low_ahead = (pair.high - pair.low) * 2;
      pair.high_ahead = next_pair - pair.low_ahead;
      return;
    }
    pair.low_ahead = num_calls == 1 ? Traits::kAhead : call == 0 ? next_pair : 0;
    pair.high_ahead = num_calls == 1 ? Traits::kAhead : call == 1 ? next_pair : 0;
  }

  /// sums = rows · pairᵀ over `depth` tiles of k; kResume: added to what the sums hold. Computes at
  /// least Traits::kLeastRows, whatever those behind `num_rows` hold.
  template <bool kResume>
  static void multiply(const RowsOperand<Element>& rows, const PairOperand& pair, int64_t depth,
                       int64_t num_rows, const SumsTarget& sums) {
    switch (num_rows) {
      case 1:
        return multiply_rows<kResume, bounded(1)>(rows, pair, depth, sums);
      case 2:
        return multiply_rows<kResume, bounded(2)>(rows, pair, depth, sums);
      case 3:
        return multiply_rows<kResume, bounded(3)>(rows, pair, depth, sums);
      case 4:
        return multiply_rows<kResume, bounded(4)>(rows, pair, depth, sums);
      case 5:
        return multiply_rows<kResume, bounded(5)>(rows, pair, depth, sums);
      case 6:
        return multiply_rows<kResume, bounded(6)>(rows, pair, depth, sums);
      case 7:
        return multiply_rows<kResume, bounded(7)>(rows, pair, depth, sums);
      default:
        return multiply_rows<kResume, bounded(8)>(rows, pair, depth, sums);
    }
  }

 private:
  static constexpr int bounded(int num_rows) {
    return num_rows < Traits::kLeastRows ? Traits::kLeastRows
           : num_rows > Traits::kMr      ? Traits::kMr
                                         : num_rows;
  }

  template <bool kResume, int kRows>
  static void multiply_rows(const RowsOperand<Element>& rows, const PairOperand& pair,
                            int64_t depth, const SumsTarget& sums) {
    if constexpr (kRows > Traits::kPairRows) {
      multiply_panel<kResume, kRows>(rows, pair, pair.low, pair.low_ahead, depth, sums.low,
                                     sums.row_stride);
      multiply_panel<kResume, kRows>(rows, pair, pair.high, pair.high_ahead, depth, sums.high,
                                     sums.row_stride);
    } else {
      multiply_pair<kResume, kRows>(rows, pair, depth, sums);
    }
  }

  template <bool kResume, int kRows>
  static void multiply_pair(const RowsOperand<Element>& rows, const PairOperand& pair,
                            int64_t depth, const SumsTarget& sums) {
    F32x16 low[kRows], high[kRows];
    for (int r = 0; r < kRows; ++r) {
      low[r] = kResume ? load_f32(sums.low + r * sums.row_stride) : splat(0);
      high[r] = kResume ? load_f32(sums.high + r * sums.row_stride) : splat(0);
    }
    for (int64_t d = 0; d < depth; ++d) {
      const Element* x = rows.data + d * rows.tile_stride;
      const uint16_t* low_words = pair.low + d * pair.tile_stride;
      const uint16_t* high_words = pair.high + d * pair.tile_stride;
#pragma GCC unroll 1  // or g++ 12 moves the prefetches of all words to the front
      for (int64_t word = 0; word < kTileDepth / 2; ++word) {
        prefetch<kFar>(low_words, pair.low_ahead);
        prefetch<kFar>(high_words, pair.high_ahead);
        prefetch<kNear>(low_words, kNearPrefetch);
        prefetch<kNear>(high_words, kNearPrefetch);
        const typename Traits::Word weights(low_words, high_words);
        weights.template add<kRows>(x, rows.row_stride, low, high);
        x += 2;
        low_words += pair.word_stride;
        high_words += pair.word_stride;
      }
    }
    for (int r = 0; r < kRows; ++r) {
      store_f32(sums.low + r * sums.row_stride, low[r]);
      store_f32(sums.high + r * sums.row_stride, high[r]);
    }
  }

  /// (Not inlined: where g++ 12 knows the strides it makes half as fast a loop of it, 26 instead of
  /// 50 multiply-adds a nanosecond of Zen 3.)
  /// @param block  of the pair: its first words.
  template <bool kResume, int kRows>
  [[gnu::noinline]] static void multiply_panel(const RowsOperand<Element>& rows,
                                               const PairOperand& pair, const uint16_t* panel,
                                               int64_t ahead, int64_t depth, float* to,
                                               int64_t to_stride) {
    F32x16 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = kResume ? load_f32(to + r * to_stride) : splat(0);
    for (int64_t d = 0; d < depth; ++d) {
      const Element* x = rows.data + d * rows.tile_stride;
      const uint16_t* words = panel + d * pair.tile_stride;
#pragma GCC unroll 1
      for (int64_t word = 0; word < kTileDepth / 2; ++word) {
        prefetch<kFar>(words, ahead);
        prefetch<kNear>(words, 2 * pair.tile_stride);
        const typename Traits::PanelWord weights(words);
        weights.template add<kRows>(x, rows.row_stride, sums);
        x += 2;
        words += pair.word_stride;
      }
    }
    for (int r = 0; r < kRows; ++r) store_f32(to + r * to_stride, sums[r]);
  }

  static constexpr int64_t kNearPrefetch = 1024;  // bytes: from the second-level cache to the first

  static constexpr int kFar = 2, kNear = 3;  // into the second-level cache, and into all of them

  template <int kLocality>
  static void prefetch(const uint16_t* from, int64_t ahead) {
    __builtin_prefetch(reinterpret_cast<const char*>(from) + ahead, 0, kLocality);
  }
};

}  // namespace
}  // namespace medusa
