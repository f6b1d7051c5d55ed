// Weights in blocks for tests: every format, and whole models.
#pragma once

#include <ATen/ATen.h>

#include "backbone/block_matrix.h"
#include "backbone/weights.h"

namespace medusa {

inline constexpr BlockFormat kBlockFormats[] = {{4, 32, false}, {4, 32, true},  {8, 32, false},
                                                {8, 32, true},  {8, 16, false}, {8, 16, true}};

/// The weight in a format, roughly: levels spread over each block's range.
inline BlockMatrix in_format(const at::Tensor& weight, BlockFormat format) {
  const int64_t n = weight.size(0), k = weight.size(1), padding = (32 - k % 32) % 32;
  const at::Tensor numbers =
      at::constant_pad_nd(weight.to(at::kFloat), {0, padding}).view({n, -1, format.block});
  const auto most = static_cast<double>((1 << format.bits) - 1);
  BlockMatrix matrix{.format = format, .num_inputs = k};
  at::Tensor levels;
  if (format.has_offsets) {
    const at::Tensor low = numbers.amin(-1), high = numbers.amax(-1);
    matrix.scales = ((high - low) / most).to(at::kHalf);
    matrix.offsets = low.to(at::kHalf);
    levels = (numbers - matrix.offsets.to(at::kFloat).unsqueeze(-1)) /
             matrix.scales.to(at::kFloat).unsqueeze(-1);
  } else {
    matrix.scales = (numbers.abs().amax(-1) / (most / 2 - 0.5)).to(at::kHalf);
    levels = numbers / matrix.scales.to(at::kFloat).unsqueeze(-1) + format.zero();
  }
  matrix.levels = levels.round().clamp(0, most).to(at::kByte).view({n, -1});
  if (padding > 0) {  // numbers behind k must be 0
    const int64_t blocks = (k + format.block - 1) / format.block;
    if (k % format.block == 0 || !format.has_offsets)
      matrix.levels.narrow(1, k, padding).fill_(format.has_offsets ? 0 : format.zero());
    if (matrix.offsets.defined())
      matrix.offsets.narrow(1, blocks, matrix.offsets.size(1) - blocks).fill_(0);
  }
  return matrix;
}

/// The same model with its products in blocks: of 4 bits with offsets, as Q4_1, the LM head of 8.
inline Weights in_blocks(Weights weights) {
  for (LayerWeights& layer : weights.layers) {
    const BlockFormat format{4, 32, true};
    layer.blocks = {in_format(layer.qkv, format), in_format(layer.output, format),
                    in_format(layer.gate_up, format), quantise_blocks(layer.down)};
    layer.qkv = layer.output = layer.gate_up = layer.down = at::Tensor();
  }
  weights.lm_head_blocks = quantise_blocks(weights.lm_head);
  weights.kind = BlockKind::Stored;
  return weights;
}

}  // namespace medusa
