// GEMMs on AMX tile registers. For kernel files only (simd.h).
#pragma once

#if defined(__AVX512BW__) && defined(__AMX_BF16__)

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/simd/simd.h"

namespace medusa {
namespace {

/// Rows are bfloat16. One instruction multiplies a tile of rows with a tile of words: 16 · 16 sums
/// over 32 elements, added in the same order for every row, so a row's bits do not depend on
/// others.
struct AmxKernel {
  using Element = uint16_t;
  static constexpr const char* kName = "AMX bfloat16 tiles";
  static constexpr int64_t kMr = 16;   // most rows of one call of multiply()
  static constexpr int64_t kMc = 512;  // rows that share one reading of the weights

  static void store(Element* to, __m512 x) { store_bf16(to, x); }
  static Element from_bf16(uint16_t bits) { return bits; }

  struct alignas(64) TileConfig {  // as LDTILECFG reads it
    uint8_t palette = 1, start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };

  static void begin() {
    static constexpr TileConfig kConfig;
    _tile_loadconfig(&kConfig);
  }
  static void end() { _tile_release(); }

  /// The loop is bound by memory, and the hardware's own prefetcher does not keep up: the first
  /// pass over a pair asks for what is read 4 KB later, the next ones find everything in the
  /// caches.
  static void plan_prefetch(int64_t call, int64_t /*num_calls*/, int64_t /*num_rows*/,
                            int64_t /*pair_size*/, PairOperand& pair) {
    pair.low_ahead = pair.high_ahead = call == 0 ? 4096 : 0;
  }

  /// sums = rows · pairᵀ over `depth` tiles of k; kResume: added to what the sums hold. Always
  /// computes 16 rows: those behind `num_rows` must be readable and writable, whatever they hold.
  template <bool kResume>
  static void multiply(const RowsOperand<Element>& rows, const PairOperand& pair, int64_t depth,
                       int64_t /*num_rows*/, const SumsTarget& sums) {
    // To the compiler a tile load is a black box that reads nothing: finish the stores before it.
    asm volatile("" ::: "memory");
    if constexpr (kResume) {
      _tile_loadd(0, sums.low, sums.row_stride * 4);
      _tile_loadd(1, sums.high, sums.row_stride * 4);
    } else {
      _tile_zero(0);
      _tile_zero(1);
    }
    for (int64_t d = 0; d < depth; ++d) {
      const uint16_t* low = pair.low + d * pair.tile_stride;
      const uint16_t* high = pair.high + d * pair.tile_stride;
      if (pair.low_ahead != 0) prefetch_tile(low, pair.low_ahead);
      if (pair.high_ahead != 0) prefetch_tile(high, pair.high_ahead);
      _tile_loadd(2, rows.data + d * rows.tile_stride, rows.row_stride * 2);
      _tile_loadd(3, low, pair.word_stride * 2);
      _tile_loadd(4, high, pair.word_stride * 2);
      _tile_dpbf16ps(0, 2, 3);
      _tile_dpbf16ps(1, 2, 4);
    }
    _tile_stored(0, sums.low, sums.row_stride * 4);
    _tile_stored(1, sums.high, sums.row_stride * 4);
  }

 private:
  static void prefetch_tile(const uint16_t* tile, int64_t ahead) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i)
      _mm_prefetch(reinterpret_cast<const char*>(tile) + ahead + i * 64, _MM_HINT_T0);
  }
};

}  // namespace
}  // namespace medusa

#endif
