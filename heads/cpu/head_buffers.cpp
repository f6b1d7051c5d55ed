#include "heads/cpu/head_buffers.h"

#include "backbone/cpu/layout/quant_layout.h"

namespace medusa {

void GemmRows::shape(const CpuKernels& kernels, int64_t num_matrices, int64_t num_rows, int64_t k) {
  kernels_ = &kernels;
  depth_ = ceil_div(k, kTileDepth);
  matrix_bytes_ = tiled_rows_size(num_rows, k) * kernels.element_bytes;
  elements_.reserve(num_matrices * matrix_bytes_);
  if (kernels.quantize == nullptr) return;
  blocks_bytes_ = row_blocks_size(num_rows, depth_);
  blocks_.reserve(num_matrices * blocks_bytes_);
}

void GemmRows::write(int64_t i, int64_t row, int64_t column, const uint16_t* bfloat16,
                     int64_t size) const {
  // Spread over the tiles as the first row of a matrix that begins there.
  kernels_->pack_rows(bfloat16, 1, size,
                      elements(i) + tiled_index(row, column, depth_) * kernels_->element_bytes);
  if (kernels_->quantize == nullptr) return;
  const int64_t first = row * depth_ + column / kTileDepth;
  kernels_->quantize(elements(i), depth_, {first, first + size / kTileDepth}, blocks(i));
}

const void* GemmRows::matrix(int64_t i) const {
  return kernels_->quantize == nullptr ? elements(i) : blocks(i);
}

void HeadBuffers::shape(const CpuKernels& kernels, const PackedHeads& weights,
                        const PassSize& pass) {
  const int64_t num_positions = pass.num_positions, num_heads = pass.num_heads;
  const int64_t size = weights.hidden_size, num_rows = num_positions * num_heads;
  const auto float_bytes = static_cast<int64_t>(sizeof(float));
  const auto bf16_bytes = static_cast<int64_t>(sizeof(uint16_t));
  hidden.shape(kernels, 1, num_positions, size);
  if (weights.reads_tokens()) {
    tokens.shape(kernels, pass.num_tokens, num_positions, size);
    inner.shape(kernels, num_heads, num_positions, size);
  }
  if (weights.reads_tokens() || weights.low_rank()) rounded.reserve(num_rows * size * bf16_bytes);
  for (GemmRows& rows : between) rows.shape(kernels, num_heads, num_positions, size);
  if (weights.shares_output())
    last.shape(kernels, 1, num_rows, size);
  else
    last.shape(kernels, num_heads, num_positions, size);
  if (weights.low_rank())
    narrow.shape(kernels, num_heads, num_positions, weights.downs[0].num_outputs());
  if (weights.corrected())
    before.shape(kernels, num_heads, num_positions, weights.correction_rank());
  sums.reserve(num_rows * size * float_bytes);
  states.reserve(num_rows * size * bf16_bytes);
  logits.reserve(num_rows * weights.outputs[0].num_outputs() * float_bytes);
}

void HeadBuffers::shape_correction(const CpuKernels& kernels, const PackedHeads& weights,
                                   int64_t num_tokens) {
  before.shape(kernels, 1, num_tokens, weights.correction_rank());
  after.reserve(num_tokens * weights.outputs[0].num_outputs() *
                static_cast<int64_t>(sizeof(float)));
}

}  // namespace medusa
