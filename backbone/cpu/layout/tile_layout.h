// How the operands of GEMMs lie in memory. Everything is cut into tiles, as AMX takes them: of
// the rows that are multiplied 16 rows with 32 of their elements, of a weight 16 outputs with the
// same 32, as 16 "words" of two neighboring elements for each output.
//
//   rows      [ceil(M / 16)][K][16 rows][32]            K = ceil(k / 32) tiles deep, zeros behind k
//   weights   [ceil(n / 32)][K][2][16 words][16 outputs][2]
//
// Weights lie in the order in which they are read: two blocks of 16 outputs side by side, called a
// pair. Weights, keys and values are bfloat16; the rows are what the ISA multiplies with them.
#pragma once

#include <cstdint>

#include "backbone/quant_format.h"

namespace medusa {

constexpr int64_t kTileRows = 16;       // rows, or outputs, of one tile
constexpr int64_t kTileDepth = 32;      // elements of k
constexpr int64_t kTileElements = 512;  // 16 · 32
constexpr int64_t kPairOutputs = 2 * kTileRows;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Elements that M rows of k take in tile order.
constexpr int64_t tiled_rows_size(int64_t num_rows, int64_t k) {
  return ceil_div(num_rows, kTileRows) * ceil_div(k, kTileDepth) * kTileElements;
}

/// Where column `column` of row `row` lies; 32 columns from a multiple of 32 on follow each other.
/// @param depth  tiles of k: ceil(k / 32).
constexpr int64_t tiled_index(int64_t row, int64_t column, int64_t depth) {
  return (row / kTileRows * depth + column / kTileDepth) * kTileElements +
         row % kTileRows * kTileDepth + column % kTileDepth;
}

/// A packed weight, as the kernels take it. Does not own.
struct TileWeightView {
  const void* data = nullptr;  // bfloat16 bits, or blocks (quant_layout.h); 64-byte aligned
  int64_t n = 0;               // outputs
  int64_t depth = 0;           // tiles of k
  QuantFormat format{};        // of a quantized weight

  int64_t num_pairs() const { return ceil_div(n, kPairOutputs); }
  int64_t pair_size() const { return 2 * depth * kTileElements; }  // numbers of bfloat16
};

/// Some of a GEMM's pairs, or of a pass's rows: [begin, end).
struct Range {
  int64_t begin = 0, end = 0;
};

/// An even share of `count` things for one of several threads.
constexpr Range share_of(int64_t count, int64_t thread, int64_t num_threads) {
  return {count * thread / num_threads, count * (thread + 1) / num_threads};
}

/// Rows in tile order, as one operand of a GEMM: numbers from one row to the next, and from one
/// tile of k to the next.
template <typename Element>
struct RowsOperand {
  const Element* data = nullptr;
  int64_t row_stride = kTileDepth, tile_stride = kTileElements;
};

/// Two blocks of 16 outputs (or cache rows, or dimensions) with their words.
struct PairOperand {
  const uint16_t* low = nullptr;
  const uint16_t* high = nullptr;
  int64_t word_stride = 2 * kTileRows, tile_stride = 2 * kTileElements;
  int64_t low_ahead = 0, high_ahead = 0;  // bytes from what is read to what to prefetch; 0: nothing
};

/// Where the sums go: 16 floats of each block per row.
struct SumsTarget {
  float* low = nullptr;
  float* high = nullptr;
  int64_t row_stride = kTileRows;
};

}  // namespace medusa
