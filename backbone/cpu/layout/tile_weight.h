// A weight packed once for tile GEMMs, and the orders of outputs that their epilogues want.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/quantized_matrix.h"

namespace medusa {

/// A copy of a weight in the order in which GEMMs read it: bfloat16 tiles (tile_layout.h), or
/// blocks (quant_layout.h).
class TileWeight {
 public:
  TileWeight() = default;

  /// @param weight  [n, k] float32 or bfloat16, on the CPU; any n and k of at least 1.
  explicit TileWeight(const at::Tensor& weight);

  /// @param order  output i of the packed weight is row order[i] of weight; -1: a row of zeros.
  TileWeight(const at::Tensor& weight, std::span<const int64_t> order);

  /// A quantized weight, in its format.
  explicit TileWeight(const QuantizedMatrix& weight);
  TileWeight(const QuantizedMatrix& weight, std::span<const int64_t> order);

  /// Valid as long as this.
  TileWeightView view() const;

  int64_t num_outputs() const { return n_; }
  int64_t num_inputs() const { return k_; }
  int64_t num_bytes() const { return static_cast<int64_t>(packed_.nbytes()); }

 private:
  at::Tensor packed_;  // flat bytes
  int64_t n_ = 0, k_ = 0;
  QuantFormat format_;  // of a quantized weight
};

/// Query, key and value rows of all heads, so that the rotary embedding's partners, i and i + D/2,
/// are lane i of a pair's first and second block. Values keep their order.
/// @param num_rotated  query and key heads.
/// @param head_size    multiple of 32.
std::vector<int64_t> qkv_order(int64_t num_rotated, int64_t num_value_heads, int64_t head_size);

/// Rows 0 to mlp_size are gates, mlp_size to 2 mlp_size their ups: blocks of 16 gates and their 16
/// ups take turns, the last blocks filled up with zeros.
std::vector<int64_t> gate_up_order(int64_t mlp_size);

}  // namespace medusa
