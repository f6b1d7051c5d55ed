// Memory of the fused heads: reused from guess to guess, grown when more positions come.
#pragma once

#include <cstdint>

#include "backbone/cpu/fused_buffers.h"
#include "backbone/cpu/tile_layout.h"
#include "heads/fused_weights.h"

namespace medusa {

/// Several equally large matrices of rows in tile order (tile_layout.h), in the engine's Numbers.
class TiledRows {
 public:
  /// What was there is void.
  /// @param k  columns, a multiple of 32.
  void shape(int64_t num_matrices, int64_t num_rows, int64_t k, int64_t number_bytes);

  char* matrix(int64_t i) const { return memory_.data<char>() + i * matrix_bytes_; }

  /// Where a row's columns from `column`, a multiple of 32, on lie: spread over the tiles as the
  /// first row of a matrix that begins there.
  char* at(int64_t i, int64_t row, int64_t column) const {
    return matrix(i) + tiled_index(row, column, depth_) * number_bytes_;
  }

 private:
  GrowingBuffer memory_;
  int64_t depth_ = 0, number_bytes_ = 0, matrix_bytes_ = 0;
};

/// What a pass needs room for.
struct PassSize {
  int64_t num_positions = 0;  // M
  int64_t num_heads = 0;      // K'
  int64_t num_tokens = 0;     // E, read at each position by the last head
};

/// What M positions of K' heads pass from one product to the next.
struct HeadBuffers {
  TiledRows hidden;       // one matrix [M, H]: what the first layers read
  TiledRows tokens;       // E matrices [M, H]: scaled embeddings
  TiledRows inner;        // K' matrices [M, H]: what the second products read
  TiledRows between[2];   // K' matrices [M, H]: from layer to layer, in turns
  TiledRows last;         // what outputs read: K' matrices [M, H]; if shared one [M K', H]
  GrowingBuffer sums;     // [M, K', H] float32: what products give
  GrowingBuffer rounded;  // [M, K', H] bfloat16: inner, row by row; or scaled embeddings
  GrowingBuffer states;   // [M, K', H] bfloat16: what layers add to
  GrowingBuffer logits;   // [M, K', V_t] float32

  /// What was there is void.
  void shape(const FusedWeights& weights, const PassSize& pass, int64_t number_bytes);
};

}  // namespace medusa
