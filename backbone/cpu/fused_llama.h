// The whole forward pass of a Llama on a CPU, with weights in bfloat16 or in blocks: one parallel
// region per pass, the small steps between products fused into them.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "backbone/kv_cache.h"
#include "backbone/part_clock.h"
#include "backbone/row_plan.h"
#include "backbone/weights.h"

namespace medusa {

struct CpuKernels;

/// The fast twin of Llama's plain path: the same numbers within rounding. Keys and values are
/// bfloat16, weights too or in blocks; sums and the residual stream float32. A row's results are
/// the same bits whatever rows run beside it, however its path is scattered over a tree, and for
/// any number of threads. AVX2 gives the bits of AVX-512, other engines the same within rounding.
///
/// Thread safety: none (scratch buffers).
class FusedLlama {
 public:
  /// Whether this dtype and these sizes are the ones that it is written for, bfloat16 on the CPU,
  /// hidden and head size multiples of 32, and this machine runs the weights' engine.
  static bool supports(const Weights& weights);

  /// Packs the products' weights; of `weights` it keeps the embedding (not a copy) and the norms.
  /// Layers that `weights` does not hold are added one by one before the first pass.
  explicit FusedLlama(const Weights& weights);
  /// @param kernels  lives as long as this.
  FusedLlama(const Weights& weights, const CpuKernels& kernels);
  ~FusedLlama();

  /// Packs the next layer, so that no two copies of all layers need to exist at once.
  void add_layer(const LayerWeights& layer);

  /// @param cache   in KvLayout::Tiles. Rows go to their places in it.
  /// @param layers  that run, ascending; the others are passed by.
  /// @returns       [N, H] bfloat16 after the final norm; valid until the next call.
  at::Tensor forward(const RowPlan& plan, KvCache& cache, std::span<const int32_t> layers);

  /// All layers alone, as Llama::run_layers().
  /// @param x  [N, H] float32.
  at::Tensor run_layers(const RowPlan& plan, const at::Tensor& x, KvCache& cache);

  /// @param hidden  [N, H] bfloat16.
  /// @returns       [N, V] float32; valid until the next call.
  at::Tensor logits(const at::Tensor& hidden);

  /// Default: the process's shared team (thread_team.h).
  void set_threads(int num_threads);

  /// As Llama's. Rope and cache write are part of Qkv, the activation of GateUp.
  void set_clock(PartClock* clock);
  std::array<int64_t, kNumPassParts> weight_bytes() const;

  const char* name() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace medusa
