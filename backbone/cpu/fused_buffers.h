// Memory of the fused step: reused from pass to pass, grown when a larger pass comes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "backbone/cpu/ops/attention_types.h"
#include "backbone/model_config.h"

namespace medusa {

/// A flat buffer that only grows. New memory is zero, and what pads a tile is never written: it
/// stays zero.
class GrowingBuffer {
 public:
  void reserve(int64_t bytes);
  template <typename T = void>
  T* data() const {
    return static_cast<T*>(memory_.defined() ? memory_.data_ptr() : nullptr);
  }

 private:
  at::Tensor memory_;  // bytes, 64-byte aligned
};

/// What rows pass from one GEMM to the next; N rows each. Elements are the ISA's; "tiled" as
/// in tile_layout.h.
struct RowBuffers {
  int64_t max_rows = 0;
  GrowingBuffer residual;       // [N, H] float32
  GrowingBuffer normed;         // tiled [N, H] Elements
  GrowingBuffer heads;          // [N, (A + 2G) · D] float32, where heads are normalized
  GrowingBuffer query;          // [G, query_rows, D] Elements
  GrowingBuffer pass_values;    // [G, N, D] bfloat16
  GrowingBuffer attention_out;  // tiled [N, A · D] Elements
  GrowingBuffer activated;      // tiled [N, I] Elements
  GrowingBuffer row_blocks;     // [N, the widest of these] as RowBlocks, for quantized weights
  at::Tensor hidden;            // [N, H] bfloat16

  void grow(const ModelConfig& config, int64_t num_rows, int64_t element_bytes, bool quantized);
  int64_t query_rows(const ModelConfig& config) const;
};

/// Owns what an AttentionScratch points to.
class ScratchBuffers {
 public:
  void grow(int64_t head_size, int64_t capacity, int64_t element_bytes);
  const AttentionScratch& view() const { return view_; }

 private:
  GrowingBuffer scores_, weights_, path_values_, sums_;
  AttentionScratch view_;
};

}  // namespace medusa
