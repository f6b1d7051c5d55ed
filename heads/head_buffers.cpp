#include "heads/head_buffers.h"

namespace medusa {

void TiledRows::shape(int64_t num_matrices, int64_t num_rows, int64_t k, int64_t number_bytes) {
  depth_ = ceil_div(k, kTileDepth);
  number_bytes_ = number_bytes;
  matrix_bytes_ = tiled_rows_size(num_rows, k) * number_bytes;
  memory_.reserve(num_matrices * matrix_bytes_);
}

void HeadBuffers::shape(const FusedWeights& weights, const PassSize& pass, int64_t number_bytes) {
  const int64_t num_positions = pass.num_positions, num_heads = pass.num_heads;
  const int64_t size = weights.hidden_size, num_rows = num_positions * num_heads;
  const auto float_bytes = static_cast<int64_t>(sizeof(float));
  const auto bf16_bytes = static_cast<int64_t>(sizeof(uint16_t));
  hidden.shape(1, num_positions, size, number_bytes);
  if (weights.reads_tokens()) {
    tokens.shape(pass.num_tokens, num_positions, size, number_bytes);
    inner.shape(num_heads, num_positions, size, number_bytes);
    rounded.reserve(num_rows * size * bf16_bytes);
  }
  for (TiledRows& rows : between) rows.shape(num_heads, num_positions, size, number_bytes);
  if (weights.shares_output())
    last.shape(1, num_rows, size, number_bytes);
  else
    last.shape(num_heads, num_positions, size, number_bytes);
  sums.reserve(num_rows * size * float_bytes);
  states.reserve(num_rows * size * bf16_bytes);
  logits.reserve(num_rows * weights.outputs[0].num_outputs() * float_bytes);
}

}  // namespace medusa
