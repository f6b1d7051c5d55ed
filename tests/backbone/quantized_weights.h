// Quantized weights for tests: every format, and whole models.
#pragma once

#include <ATen/ATen.h>

#include "backbone/quantized_matrix.h"
#include "backbone/weights.h"

namespace medusa {

inline constexpr QuantFormat kQuantFormats[] = {{4, 32, false}, {4, 32, true},  {8, 32, false},
                                                {8, 32, true},  {8, 16, false}, {8, 16, true}};

/// The weight in a format, roughly: quants spread over each block's range.
inline QuantizedMatrix in_format(const at::Tensor& weight, QuantFormat format) {
  const int64_t n = weight.size(0), k = weight.size(1), padding = (32 - k % 32) % 32;
  const at::Tensor elements =
      at::constant_pad_nd(weight.to(at::kFloat), {0, padding}).view({n, -1, format.block});
  const auto most = static_cast<double>((1 << format.bits) - 1);
  QuantizedMatrix matrix{.format = format, .num_inputs = k};
  at::Tensor quants;
  if (format.has_mins) {
    const at::Tensor low = elements.amin(-1), high = elements.amax(-1);
    matrix.scales = ((high - low) / most).to(at::kHalf);
    matrix.mins = low.to(at::kHalf);
    quants = (elements - matrix.mins.to(at::kFloat).unsqueeze(-1)) /
             matrix.scales.to(at::kFloat).unsqueeze(-1);
  } else {
    matrix.scales = (elements.abs().amax(-1) / (most / 2 - 0.5)).to(at::kHalf);
    quants = elements / matrix.scales.to(at::kFloat).unsqueeze(-1) + format.zero();
  }
  matrix.quants = quants.round().clamp(0, most).to(at::kByte).view({n, -1});
  if (padding > 0) {  // elements behind k must be 0
    const int64_t blocks = (k + format.block - 1) / format.block;
    if (k % format.block == 0 || !format.has_mins)
      matrix.quants.narrow(1, k, padding).fill_(format.has_mins ? 0 : format.zero());
    if (matrix.mins.defined()) matrix.mins.narrow(1, blocks, matrix.mins.size(1) - blocks).fill_(0);
  }
  return matrix;
}

/// The same model with quantized weights: of 4 bits with mins, as Q4_1, the LM head of 8.
inline Weights quantized(Weights weights) {
  for (LayerWeights& layer : weights.layers) {
    const QuantFormat format{4, 32, true};
    layer.blocks = {in_format(layer.qkv, format), in_format(layer.output, format),
                    in_format(layer.gate_up, format), quantize_matrix(layer.down)};
    layer.qkv = layer.output = layer.gate_up = layer.down = at::Tensor();
  }
  weights.lm_head_quantized = quantize_matrix(weights.lm_head);
  weights.kind = QuantKind::Stored;
  return weights;
}

}  // namespace medusa
