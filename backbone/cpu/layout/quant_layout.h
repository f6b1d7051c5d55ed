// How the operands of GEMMs with quantized weights lie in memory (tile_layout.h has those of
// bfloat16 weights, and the pairs of 16 outputs that these share).
//
//   weights   [pairs][2 blocks of 16 outputs][K tiles] of
//               scales   [32 / block][16 outputs] half
//               mins     the same, where the format has them
//               quants   [8 words][16 outputs][4 quants] of a byte, or, with 4 bits,
//                        [4][16 outputs][4]: word 2j in the low halves of the bytes, word 2j + 1
//                        in the high ones
//   rows      [ceil(M / 16)][K tiles][16 rows] of RowBlock
#pragma once

#include <cstdint>

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/quant_format.h"

namespace medusa {

/// 32 elements of a row: scale · quant. The sums spare the GEMMs a pass over the quants: "zero"
/// sums make up for a weight's quants being stored as bytes, min sums meet its mins.
struct alignas(64) RowBlock {
  int8_t quants[32];
  float scale;
  float min_sum;            // scale · sum of quants
  float min_halves[2];      // the same of each 16
  int32_t zero4, zero8;     // -8 and -128 · sum of quants
  int32_t zero8_halves[2];  // of each 16
};
static_assert(sizeof(RowBlock) == 64);

constexpr int64_t quant_scale_bytes(QuantFormat format) {
  return kTileRows * 2 * (kTileDepth / format.block);
}

/// Bytes of 16 outputs and 32 elements of k.
constexpr int64_t quant_tile_bytes(QuantFormat format) {
  return quant_scale_bytes(format) * (format.has_mins ? 2 : 1) + kTileElements * format.bits / 8;
}

constexpr int64_t row_blocks_size(int64_t num_rows, int64_t depth) {  // bytes
  return ceil_div(num_rows, kTileRows) * kTileRows * depth * static_cast<int64_t>(sizeof(RowBlock));
}

/// Which RowBlock holds tile `tile` of row `row`.
constexpr int64_t row_block_index(int64_t row, int64_t tile, int64_t depth) {
  return (row / kTileRows * depth + tile) * kTileRows + row % kTileRows;
}

}  // namespace medusa
