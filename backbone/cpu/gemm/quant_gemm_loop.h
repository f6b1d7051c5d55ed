// GEMMs with quantized weights: the loops around one kernel's GEMM of 16 outputs. For kernel
// files only (simd.h).
//
// Integer sums are exact, and each row's float sums run along k in one chain: a row's bits do not
// depend on how many rows are computed together.
#pragma once

#include "backbone/cpu/layout/quant_layout.h"
#include "backbone/cpu/simd/simd.h"

namespace medusa {
namespace {

/// sums = [num_rows][16]: 16 outputs over the whole depth. Rows behind num_rows up to the kernel's
/// kQuantMr may be computed too: their RowBlocks must be readable, their sums writable.
/// @param ahead  bytes to what is prefetched; 0: nothing.
using QuantGemmFunction = void (*)(const uint8_t* half, const RowBlock* rows, int64_t depth,
                                   int64_t ahead, int64_t num_rows, float* sums);

/// @param Gemm  <bits, block, mins>, the GEMM of one format.
template <template <int, int, bool> typename Gemm>
QuantGemmFunction find_quant_gemm(QuantFormat format) {
  if (format.bits == 4) return format.has_mins ? Gemm<4, 32, true>::run : Gemm<4, 32, false>::run;
  if (format.block == 32) return format.has_mins ? Gemm<8, 32, true>::run : Gemm<8, 32, false>::run;
  return format.has_mins ? Gemm<8, 16, true>::run : Gemm<8, 16, false>::run;
}

/// What the GEMMs of all formats share.
template <int kBits, int kBlock, bool kMins>
struct QuantTile {
  static constexpr int kBlocks = 32 / kBlock;  // of a tile
  static constexpr QuantFormat kFormat{kBits, kBlock, kMins};
  static constexpr int64_t kBytes = quant_tile_bytes(kFormat);
  static constexpr int64_t kScaleBytes = quant_scale_bytes(kFormat);
  static constexpr int64_t kHeaderBytes = kScaleBytes * (kMins ? 2 : 1);

  static int32_t zero_of(const RowBlock& row, int block) {
    if (kBits == 4) return row.zero4;
    return kBlocks == 1 ? row.zero8 : row.zero8_halves[block];
  }
  static float min_of(const RowBlock& row, int block) {
    return kBlocks == 1 ? row.min_sum : row.min_halves[block];
  }
  /// @param ahead  bytes from the tile to the one to ask for; 0: none.
  static void prefetch(const uint8_t* from, int64_t ahead) {
    if (ahead == 0) return;
    for (int64_t line = 0; line < kBytes; line += 64) __builtin_prefetch(from + ahead + line, 0, 3);
  }
  /// One of two shares of the same, for a loop that reads each tile twice.
  static void prefetch_share(const uint8_t* from, int64_t ahead, int share) {
    if (ahead == 0) return;
    for (int64_t line = share * 64; line < kBytes; line += 128)
      __builtin_prefetch(from + ahead + line, 0, 3);
  }
};

/// All but the quants.
/// @param largest  of the 32 elements, without signs.
/// @param sums     of the quants of each 16.
inline void finish_row_block(float largest, const int32_t (&sums)[2], RowBlock& to) {
  to.scale = largest / 127.0F;
  for (int half = 0; half < 2; ++half) {
    to.min_halves[half] = to.scale * static_cast<float>(sums[half]);
    to.zero8_halves[half] = -128 * sums[half];
  }
  to.min_sum = to.scale * static_cast<float>(sums[0] + sums[1]);
  to.zero4 = -8 * (sums[0] + sums[1]);
  to.zero8 = -128 * (sums[0] + sums[1]);
}

/// The RowBlocks [begin, end), counted row by row, of float32 rows in tile order.
///
/// @param Kernel  store_quants(numbers, quants) rounds sixteen numbers of at most 127 to whole
///                ones, ties to even, stores them and returns their sum.
template <typename Kernel>
void quantize_rows(const void* tiled, int64_t depth, Range blocks, void* out) {
  for (int64_t i = blocks.begin; i < blocks.end; ++i) {
    const int64_t row = i / depth, tile = i % depth;
    const float* from = static_cast<const float*>(tiled) + tiled_index(row, tile * 32, depth);
    RowBlock& to = static_cast<RowBlock*>(out)[row_block_index(row, tile, depth)];
    const F32x16 zero = splat(0), a = load_f32(from), b = load_f32(from + kLanes);
    float largest = largest_of(larger(larger(a, zero - a), larger(b, zero - b)));
    if (largest < kLeastRowBlock) largest = 0;
    const F32x16 factor = splat(largest > 0 ? 127.0F / largest : 0.0F);
    const int32_t sums[2] = {Kernel::store_quants(a * factor, to.quants),
                             Kernel::store_quants(b * factor, to.quants + kLanes)};
    finish_row_block(largest, sums, to);
  }
}

/// As for_each_pair of gemm_loop.h, which calls it where the kernel has quant_gemm(). A
/// single pass over a pair asks for what is read Kernel::quant_ahead() bytes later; the first of
/// several asks for the whole next pair.
template <typename Kernel, typename Epilogue>
void for_each_quant_pair(const TileWeightView& weight, const void* row_blocks, int64_t num_rows,
                         Range pairs, const Epilogue& epilogue) {
  constexpr int64_t kMr = Kernel::kQuantMr, kMc = Kernel::kMc;
  const auto* rows = static_cast<const RowBlock*>(row_blocks);
  alignas(64) float low[kMr][kTileRows], high[kMr][kTileRows];
  const QuantGemmFunction multiply = Kernel::quant_gemm(weight.format);
  const int64_t half_bytes = weight.depth * quant_tile_bytes(weight.format);
  for (int64_t chunk = 0; chunk < num_rows; chunk += kMc) {
    const int64_t end = num_rows - chunk < kMc ? num_rows : chunk + kMc;
    for (int64_t p = pairs.begin; p < pairs.end; ++p) {
      const uint8_t* pair = static_cast<const uint8_t*>(weight.data) + p * 2 * half_bytes;
      for (int64_t row = chunk, count = 0; row < end; row += count) {
        const int64_t tile_end = (row / kTileRows + 1) * kTileRows;
        const int64_t left = end < tile_end ? end - row : tile_end - row;
        count = left < kMr ? left : kMr;
        const bool lone = end - chunk <= kMr;
        const int64_t ahead = lone           ? Kernel::quant_ahead(half_bytes)
                              : row == chunk ? 2 * half_bytes
                                             : 0;
        const RowBlock* from = rows + row_block_index(row, 0, weight.depth);
        multiply(pair, from, weight.depth, ahead, count, low[0]);
        multiply(pair + half_bytes, from, weight.depth, ahead, count, high[0]);
        for (int64_t r = 0; r < count; ++r)
          epilogue(p, row + r, load_f32(low[r]), load_f32(high[r]));
      }
    }
  }
}

}  // namespace
}  // namespace medusa
