// What a fast twin of Llama's plain path can do: the CPU's (cpu/fused_llama.h) and the GPU's
// (cuda/device_llama.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>

#include "backbone/kv_cache.h"
#include "backbone/part_clock.h"
#include "backbone/row_plan.h"
#include "backbone/weights.h"

namespace medusa {

/// The same numbers as the plain path within rounding. A row's results are the same bits whatever
/// rows run beside it and however its path is scattered over a tree.
///
/// Thread safety: none (scratch buffers).
class FastLlama {
 public:
  virtual ~FastLlama() = default;

  /// Takes the next layer, so that no two copies of all layers need to exist at once.
  virtual void add_layer(const LayerWeights& layer) = 0;

  /// @param cache   in layout(). Rows go to their places in it.
  /// @param layers  that run, ascending; the others are passed by.
  /// @returns       [N, H] bfloat16 after the final norm; valid until the next call.
  virtual at::Tensor forward(const RowPlan& plan, KvCache& cache,
                             std::span<const int32_t> layers) = 0;

  /// All layers alone, as Llama::run_layers().
  /// @param x  [N, H] float32.
  virtual at::Tensor run_layers(const RowPlan& plan, const at::Tensor& x, KvCache& cache) = 0;

  /// @param hidden  [N, H] bfloat16.
  /// @returns       [N, V] float32; valid until the next call.
  virtual at::Tensor logits(const at::Tensor& hidden) = 0;

  virtual KvLayout layout() const = 0;

  /// As Llama's.
  virtual void set_clock(PartClock* clock) = 0;
  virtual std::array<int64_t, kNumPassParts> weight_bytes() const = 0;

  virtual const char* name() const = 0;
};

}  // namespace medusa
