// A product with a fixed weight, prepared once for the machine that multiplies it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "backbone/kernels.h"

namespace medusa {

/// y = x · weightᵀ, always float32: the residual stream and the logits want it, and the few rows of
/// a decoding step make its price small.
///
/// In bfloat16 on a CPU a row's result is the same bits whatever rows stand beside it.
class Linear {
 public:
  Linear() = default;

  /// @param weight  [n, k] float32 or bfloat16 on any device. A packed copy is made where that is
  ///                faster; then the weight itself is not kept.
  explicit Linear(const at::Tensor& weight, Kernels kernels = Kernels::Auto);

  /// @param x  [M, k] in the weight's dtype, on its device.
  /// @returns  [M, n] float32.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_;  // as given
  at::Tensor packed_;  // oneDNN's own layout, or undefined
};

}  // namespace medusa
