// How the operands of tile products lie in memory. One tile register holds 16 rows of 64 bytes; a
// product takes 16 rows of x with 32 of their bfloat16 numbers, and 16 outputs of the weight with
// the same 32, and adds to 16 × 16 float32 sums.
//
//   rows      [ceil(M / 16)][K][16 rows][32]          K = ceil(k / 32) tiles deep, zeros behind k
//   weights   [ceil(n / 32)][K][2][16 pairs of k][16 outputs][2]
//
// Weights lie in the order in which they are read: two blocks of 16 outputs side by side (a "pair"
// of blocks), so that a tile of x meets two tiles of weights.
#pragma once

#include <cstdint>

namespace medusa {

constexpr int64_t kTileRows = 16;      // rows of x, or outputs, of one tile
constexpr int64_t kTileDepth = 32;     // bfloat16 numbers of k
constexpr int64_t kTileNumbers = 512;  // bfloat16 numbers of a tile: 1 KB
constexpr int64_t kPairOutputs = 2 * kTileRows;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Numbers that M rows of k take in tile order.
constexpr int64_t tiled_rows_size(int64_t num_rows, int64_t k) {
  return ceil_div(num_rows, kTileRows) * ceil_div(k, kTileDepth) * kTileNumbers;
}

/// Where column `column` of row `row` lies; 32 columns from a multiple of 32 on follow each other.
/// @param depth  tiles of k: ceil(k / 32).
constexpr int64_t tiled_index(int64_t row, int64_t column, int64_t depth) {
  return (row / kTileRows * depth + column / kTileDepth) * kTileNumbers +
         row % kTileRows * kTileDepth + column % kTileDepth;
}

/// A weight in tile order, as the kernels take it. Does not own.
struct TileWeightView {
  const uint16_t* data = nullptr;  // bfloat16 bits, 64-byte aligned
  int64_t n = 0;                   // outputs
  int64_t depth = 0;               // tiles of k

  int64_t num_pairs() const { return ceil_div(n, kPairOutputs); }
  int64_t pair_size() const { return 2 * depth * kTileNumbers; }
};

/// The pairs [begin, end) of a weight that one thread computes.
struct PairRange {
  int64_t begin = 0, end = 0;
};

/// An even share of `count` things for one of several threads.
constexpr PairRange share_of(int64_t count, int64_t thread, int64_t num_threads) {
  return {count * thread / num_threads, count * (thread + 1) / num_threads};
}

}  // namespace medusa
