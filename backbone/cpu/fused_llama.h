// The whole forward pass of a Llama on a CPU, with weights in bfloat16 or in blocks: one parallel
// region per pass, the small steps between products fused into them.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "backbone/execution_context.h"
#include "backbone/fast_llama.h"

namespace medusa {

struct CpuKernels;

/// Keys and values are bfloat16, weights too or in blocks; sums and the residual stream float32. A
/// row's results are the same bits for any number of threads, too. AVX2 gives the bits of AVX-512,
/// other engines the same within rounding.
///
/// Thread safety: none (scratch buffers).
class FusedLlama : public FastLlama {
 public:
  /// Whether this dtype and these sizes are the ones that it is written for, bfloat16 on the CPU,
  /// hidden and head size multiples of 32, and this machine runs the ISA.
  static bool supports(const Weights& weights, CpuIsa isa);

  /// Packs the products' weights; of `weights` it keeps the embedding (not a copy) and the norms.
  /// Layers that `weights` does not hold are added one by one before the first pass.
  FusedLlama(const Weights& weights, const ExecutionContext& execution);
  /// @param kernels  lives as long as this.
  FusedLlama(const Weights& weights, const CpuKernels& kernels, std::shared_ptr<ThreadPool> pool);
  ~FusedLlama() override;

  void add_layer(const LayerWeights& layer) override;  // packs it
  at::Tensor forward(const RowPlan& plan, KvCache& cache, std::span<const int32_t> layers) override;
  at::Tensor run_layers(const RowPlan& plan, const at::Tensor& x, KvCache& cache) override;
  at::Tensor logits(const at::Tensor& hidden) override;
  KvLayout layout() const override { return KvLayout::Tiles; }

  /// Rope and cache write are part of Qkv, the activation of GateUp.
  void set_clock(PartClock* clock) override;
  std::array<int64_t, kNumPassParts> weight_bytes() const override;

  const char* name() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace medusa
