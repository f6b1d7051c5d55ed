// Rotary position embedding (Su et al., arXiv:2104.09864) in Hugging Face's layout: dimension i of
// a head is rotated together with dimension i + D/2.
#pragma once

#include <ATen/core/Tensor.h>

#include "backbone/model_config.h"

namespace medusa {

/// Cosines and sines of position · base^(-2i/R) / factor i, times the model's rope_attention. Where
/// heads have partial RoPE (R < D) pairs from R/2 on stay as they are: cosine 1, sine 0.
struct RopeTable {
  at::Tensor cos, sin;  // [positions, D / 2] float32
};

/// @returns  for every position of the model's context.
RopeTable make_rope_table(const ModelConfig& config, at::Device device);

/// @param x          [N, heads, D] float32.
/// @param positions  [N] int64, on x's device.
/// @returns          [N, heads, D] float32.
at::Tensor apply_rope(const at::Tensor& x, const at::Tensor& positions, const RopeTable& table);

}  // namespace medusa
