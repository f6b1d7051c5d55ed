#include "backbone/cpu/fused_buffers.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "backbone/cpu/layout/quant_layout.h"

namespace medusa {

void GrowingBuffer::reserve(int64_t bytes) {
  if (!memory_.defined() || memory_.numel() < bytes) memory_ = at::zeros({bytes}, at::kByte);
}

void RowBuffers::grow(const ModelConfig& config, int64_t num_rows, int64_t element_bytes,
                      bool quantized) {
  if (num_rows <= max_rows) return;
  max_rows = ceil_div(num_rows, kTileRows) * kTileRows;
  const int64_t query_size = config.num_heads * config.head_size;
  const auto float_bytes = static_cast<int64_t>(sizeof(float));
  const auto bf16_bytes = static_cast<int64_t>(sizeof(uint16_t));
  residual.reserve(max_rows * config.hidden_size * float_bytes);
  normed.reserve(tiled_rows_size(max_rows, config.hidden_size) * element_bytes);
  if (config.qk_norm)
    heads.reserve(max_rows * (query_size + 2 * config.num_kv_heads * config.head_size) *
                  float_bytes);
  query.reserve(config.num_kv_heads * query_rows(config) * config.head_size * element_bytes);
  pass_values.reserve(config.num_kv_heads * max_rows * config.head_size * bf16_bytes);
  attention_out.reserve(tiled_rows_size(max_rows, query_size) * element_bytes);
  activated.reserve(tiled_rows_size(max_rows, config.mlp_size) * element_bytes);
  if (quantized) {
    const int64_t widest = std::max({config.hidden_size, query_size, config.mlp_size});
    row_blocks.reserve(row_blocks_size(max_rows, ceil_div(widest, kTileDepth)));
  }
  hidden = at::zeros({max_rows, config.hidden_size}, at::kBFloat16);
}

int64_t RowBuffers::query_rows(const ModelConfig& config) const {
  // Tiles are read whole: one more behind the last query.
  return max_rows * (config.num_heads / config.num_kv_heads) + kTileRows;
}

void ScratchBuffers::grow(int64_t head_size, int64_t capacity, int64_t element_bytes) {
  if (view_.stride >= capacity) return;
  view_.stride = capacity + kTileDepth;  // rows a multiple of 4 KB apart would share cache sets
  scores_.reserve(kTileRows * view_.stride * static_cast<int64_t>(sizeof(float)));
  weights_.reserve(2 * kTileRows * view_.stride * element_bytes);
  path_values_.reserve(view_.stride * head_size * static_cast<int64_t>(sizeof(uint16_t)));
  sums_.reserve(2 * kTileRows * head_size * static_cast<int64_t>(sizeof(float)));
  view_.scores = scores_.data<float>();
  view_.weights = weights_.data();
  view_.path_values = path_values_.data<uint16_t>();
  view_.sums = sums_.data<float>();
}

}  // namespace medusa
