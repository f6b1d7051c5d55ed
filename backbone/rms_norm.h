// RMSNorm (Zhang and Sennrich, arXiv:1910.07467): x / rms(x) · weight, without mean or bias.
#pragma once

#include <ATen/core/Tensor.h>

namespace medusa {

/// @param x       [N, H] float32.
/// @param weight  [H] float32.
/// @returns       [N, H] float32.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

}  // namespace medusa
