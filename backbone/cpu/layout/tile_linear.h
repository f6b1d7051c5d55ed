// One GEMM with a packed weight by itself: what backbone/linear.h uses on CPUs with our kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/layout/tile_weight.h"

namespace medusa {

class ThreadPool;

/// y = x · weightᵀ on a pool's threads. A row's bits do not depend on the rows beside it.
///
/// Thread safety: const calls may come from any thread; they take turns.
class TileLinear {
 public:
  /// @param weight   [n, k] bfloat16 on the CPU; a packed copy is made.
  /// @param kernels  lives as long as this.
  TileLinear(const at::Tensor& weight, const CpuKernels& kernels, std::shared_ptr<ThreadPool> pool);

  /// @param weight   on the CPU; a packed copy is made.
  /// @param kernels  for quantized weights.
  TileLinear(const QuantizedMatrix& weight, const CpuKernels& kernels,
             std::shared_ptr<ThreadPool> pool);

  /// @param x  [M, k] bfloat16; for a quantized weight they are rounded once more, to its blocks.
  /// @returns  [M, n] float32.
  at::Tensor operator()(const at::Tensor& x) const;

  const char* kernels() const { return kernels_->name; }

 private:
  const CpuKernels* kernels_;
  std::shared_ptr<ThreadPool> pool_;
  TileWeight weight_;
};

}  // namespace medusa
