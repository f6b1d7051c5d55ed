// GEMMs with quantized weights on AMX's tiles of bytes. For kernel files only (simd.h).
#pragma once

#if defined(__AVX512VNNI__) && defined(__AMX_INT8__)

#include "backbone/cpu/gemm/vnni_kernel.h"

namespace medusa {
namespace {

/// The GEMM of one format, with the bits of VnniQuantGemm: the same integer sums of a block, added
/// to the same chain of floats.
///
/// A step is one block of a tile: its quants are stored as bytes, a tile instruction sums them for
/// sixteen rows, the sums go through memory (there is no other way out of a tile register), and are
/// scaled. These run one to three steps behind each other, so that none waits for the one before.
template <int kBits, int kBlock, bool kMins>
struct AmxQuantGemm {
  /// Below, reading each quant once for all rows gains less than the sums' way through memory
  /// costs.
  static constexpr int64_t kLeastRows = 5;

  static void run(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                  int64_t num_rows, float* sums) {
    if (num_rows < kLeastRows)
      return VnniQuantGemm<kBits, kBlock, kMins>::run(half, rows, depth, ahead, num_rows, sums);
    if (num_rows <= 8) return multiply<8>(half, rows, depth, ahead, sums);
    if (num_rows <= 12) return multiply<12>(half, rows, depth, ahead, sums);
    return multiply<16>(half, rows, depth, ahead, sums);
  }

 private:
  using Layout = QuantTile<kBits, kBlock, kMins>;
  static constexpr int kBlocks = Layout::kBlocks;
  static constexpr int64_t kWordsBytes = 512;  // 8 words of 16 outputs
  static constexpr int64_t kSlots = 4;         // of unpacked blocks

  /// What the steps of a half share.
  struct Steps {
    const uint8_t* half;
    const RowBlock* rows;
    int64_t count;  // blocks
    int64_t ahead;
    alignas(64) uint8_t words[kSlots][kWordsBytes];
    alignas(64) int32_t sums[2][kTileRows][kTileRows];

    const uint8_t* tile(int64_t step) const { return half + step / kBlocks * Layout::kBytes; }
    const RowBlock* tile_rows(int64_t step) const { return rows + step / kBlocks * kTileRows; }
  };

  template <int kRows>
  static void multiply(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                       float* to) {
    Steps steps;
    steps.half = half;
    steps.rows = rows;
    steps.count = depth * kBlocks;
    steps.ahead = ahead;
    __m512 chains[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) chains[r] = _mm512_setzero_ps();
    unpack<0>(steps, 0);
    unpack<1>(steps, 1);
    unpack<0>(steps, 2);
    sum<0>(steps, 0);
    sum<1>(steps, 1);
    advance<0>(steps, 0);
    int64_t step = 1;
    for (; step + 1 < steps.count; step += 2) {
      advance<1>(steps, step);
      scale<0, kRows>(steps, step - 1, chains);
      advance<0>(steps, step + 1);
      scale<1, kRows>(steps, step, chains);
    }
    if (step < steps.count) {
      advance<1>(steps, step);
      scale<0, kRows>(steps, step - 1, chains);
      scale<1, kRows>(steps, step, chains);
    } else {
      scale<0, kRows>(steps, step - 1, chains);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) _mm512_store_ps(to + r * kTileRows, chains[r]);
  }

  /// @param kParity  of the step, here and below.
  template <int kParity>
  [[gnu::always_inline]] static void advance(Steps& steps, int64_t step) {
    unpack<1 - kParity>(steps, step + 3);
    fetch<kParity>(steps, step);
    sum<kParity>(steps, step + 2);
  }

  /// A block's quants as words of bytes, signed where the format has no mins, and zeros in place
  /// of the tile's other block.
  template <int kParity>
  [[gnu::always_inline]] static void unpack(Steps& steps, int64_t step) {
    if (step >= steps.count) return;
    constexpr int kFirst = kBlocks == 2 ? kParity * 4 : 0, kEnd = kBlocks == 2 ? kFirst + 4 : 8;
    __m512i words[8];
    load_words<kBits>(steps.tile(step) + Layout::kHeaderBytes, words);
    uint8_t* to = steps.words[step % kSlots];
#pragma GCC unroll 8
    for (int w = 0; w < 8; ++w) {
      __m512i word = words[w];
      if (!kMins) word = _mm512_sub_epi8(word, _mm512_set1_epi8(kBits == 4 ? 8 : -128));
      if (w < kFirst || w >= kEnd) word = _mm512_setzero_si512();
      _mm512_store_si512(to + w * 64, word);
    }
  }

  /// Sixteen rows' sums of a block, in the tile register of the step's parity.
  template <int kParity>
  [[gnu::always_inline]] static void sum(Steps& steps, int64_t step) {
    if (step >= steps.count) return;
    // To the compiler a tile load is a black box that reads nothing: finish the stores before it.
    asm volatile("" ::: "memory");
    const RowBlock* rows = steps.tile_rows(step);
    const uint8_t* words = steps.words[step % kSlots];
    _tile_loadd(2, rows, sizeof(RowBlock));
    _tile_loadd(3, words, 64);
    if constexpr (kParity == 0) {
      _tile_zero(0);
      if constexpr (kMins)
        _tile_dpbsud(0, 2, 3);
      else
        _tile_dpbssd(0, 2, 3);
    } else {
      _tile_zero(1);
      if constexpr (kMins)
        _tile_dpbsud(1, 2, 3);
      else
        _tile_dpbssd(1, 2, 3);
    }
  }

  template <int kParity>
  [[gnu::always_inline]] static void fetch(Steps& steps, int64_t /*step*/) {
    if constexpr (kParity == 0)
      _tile_stored(0, steps.sums[0], 64);
    else
      _tile_stored(1, steps.sums[1], 64);
    asm volatile("" ::: "memory");
  }

  template <int kParity, int kRows>
  [[gnu::always_inline]] static void scale(const Steps& steps, int64_t step,
                                           __m512 (&chains)[kRows]) {
    constexpr int kIn = kBlocks == 2 ? kParity : 0;  // which block of its tile
    const uint8_t* tile = steps.tile(step);
    const RowBlock* rows = steps.tile_rows(step);
    const __m512 scales = load_halves(tile + kIn * 32);
    const __m512 mins = kMins ? load_halves(tile + Layout::kScaleBytes + kIn * 32) : scales;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      // One line a row: all at once they would wait for each other, and the sums for them.
      if (kIn == 0) prefetch_line(tile, steps.ahead, r);
      if (kIn == 0) prefetch_line(tile, steps.ahead, r + kRows);
      const float* row_min = kBlocks == 1 ? &rows[r].min_sum : &rows[r].min_halves[kIn];
      add_row(steps.sums[kParity][r], rows[r].scale, *row_min, scales, mins, chains[r]);
    }
  }

  [[gnu::always_inline]] static void prefetch_line(const uint8_t* tile, int64_t ahead,
                                                   int64_t line) {
    if (ahead != 0 && line * 64 < Layout::kBytes)
      __builtin_prefetch(tile + ahead + line * 64, 0, 3);
  }

  /// chain += (scales · row_scale) · sums, and mins · row_min. While tile instructions run,
  /// only one port multiplies and converts, but two add: 1.5 · 2^23 + n is made by adding n to its
  /// bits, and taking 1.5 · 2^23 off leaves n exactly (|n| < 2^20). In assembly: g++ 12 begins
  /// many rows' multiplications at once and runs out of registers.
  [[gnu::always_inline]] static void add_row(const int32_t (&sums)[kTileRows],
                                             const float& row_scale, const float& row_min,
                                             __m512 scales, __m512 mins, __m512& chain) {
    const __m512i shift_bits = _mm512_set1_epi32(0x4B400000);
    __m512 whole, scale;
    if constexpr (kMins)
      asm("vpaddd %[sums], %[bits], %[whole]\n\t"
          "vmulps %[row_scale]%{1to16%}, %[scales], %[scale]\n\t"
          "vsubps %[shift], %[whole], %[whole]\n\t"
          "vfmadd231ps %[whole], %[scale], %[chain]\n\t"
          "vfmadd231ps %[row_min]%{1to16%}, %[mins], %[chain]"
          : [chain] "+v"(chain), [whole] "=&v"(whole), [scale] "=&v"(scale)
          : [sums] "m"(sums), [row_scale] "m"(row_scale), [row_min] "m"(row_min),
            [scales] "v"(scales), [mins] "v"(mins), [bits] "v"(shift_bits),
            [shift] "v"(_mm512_castsi512_ps(shift_bits)));
    else
      asm("vpaddd %[sums], %[bits], %[whole]\n\t"
          "vmulps %[row_scale]%{1to16%}, %[scales], %[scale]\n\t"
          "vsubps %[shift], %[whole], %[whole]\n\t"
          "vfmadd231ps %[whole], %[scale], %[chain]"
          : [chain] "+v"(chain), [whole] "=&v"(whole), [scale] "=&v"(scale)
          : [sums] "m"(sums), [row_scale] "m"(row_scale), [scales] "v"(scales),
            [bits] "v"(shift_bits), [shift] "v"(_mm512_castsi512_ps(shift_bits)));
  }
};

/// All beside the GEMMs is VnniKernel's.
struct AmxQuantKernel : VnniKernel {
  static constexpr const char* kName = "AMX tiles, block weights";
  static constexpr int64_t kQuantMr = kTileRows;

  struct alignas(64) TileConfig {  // as LDTILECFG reads it
    uint8_t palette = 1, start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 32, 64};  // two of sums, quants of rows, words
    uint8_t rows[16] = {16, 16, 16, 8};
  };

  static void begin() {
    static constexpr TileConfig kConfig;
    _tile_loadconfig(&kConfig);
  }
  static void end() { _tile_release(); }

  static QuantGemmFunction quant_gemm(QuantFormat format) {
    return find_quant_gemm<AmxQuantGemm>(format);
  }
};

}  // namespace
}  // namespace medusa

#endif
