// A GEMM with a fixed weight, prepared once for the machine that multiplies it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "backbone/execution_context.h"
#include "backbone/quantized_matrix.h"

namespace medusa {

class TileLinear;

/// y = x · weightᵀ, always float32: the residual stream and the logits want it, and the few rows of
/// a decoding step make its cost small.
///
/// In bfloat16, or quantized, on a CPU that our kernels run on, a row's result is the same bits
/// whatever rows stand beside it; LibTorch's GEMM of one row now and then rounds differently on
/// some CPUs.
///
/// Thread safety: const calls may run at the same time. Copies share the packed weight.
class Linear {
 public:
  Linear() = default;

  /// @param weight  [n, k] float32 or bfloat16 on any device. In bfloat16 on a CPU that our kernels
  ///                run on (backbone/cpu/) a packed copy is made, and the weight itself not kept.
  /// @param execution  threads and ISA that multiply it there; the machine has the ISA.
  Linear(const at::Tensor& weight, const ExecutionContext& execution);

  /// Of a quantized weight on a CPU a packed copy is made. Kernels::Reference, and other devices:
  /// LibTorch's float32 GEMMs of what quants and scales stand for, rows rounded as the kernels
  /// round them.
  Linear(const QuantizedMatrix& weight, const ExecutionContext& execution);

  /// @param x  [M, k] in the weight's dtype, on its device; float32 or bfloat16 for a quantized
  ///           weight.
  /// @returns  [M, n] float32. Kernels::Reference rounds to bfloat16 on the way where x is.
  at::Tensor operator()(const at::Tensor& x) const;

  const char* kernels() const;  // that multiply, such as "AVX-512" or "LibTorch"

 private:
  at::Tensor weight_;                         // as given, or undefined:
  std::shared_ptr<const TileLinear> packed_;  // packed
  bool rounds_rows_ = false;                  // weight_ was quantized
};

}  // namespace medusa
