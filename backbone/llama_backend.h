// What computes a Llama's passes: the reference (reference_llama.h), our CPU kernels
// (cpu/cpu_llama.h) or a GPU's (cuda/cuda_llama.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backbone/execution_context.h"
#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"
#include "backbone/stage_timer.h"
#include "backbone/weights.h"

namespace medusa {

/// What a pass may be asked for besides its states: the residual stream as some layers find it.
/// Drafters of one layer read it (EAGLE-3, arXiv:2503.01840).
struct Features {
  std::vector<int32_t> layers;  // [F] ascending: before which; L: behind the last layer, before the
                                // final norm
  std::vector<int32_t> rows;    // [R] ascending, of the pass
  at::Tensor values{};          // [R, F, H] float32 on the model's device: the pass makes it

  /// The layer's place among those that are asked for; nothing: it is not.
  std::optional<int64_t> place_of(int64_t layer) const;

  /// Keeps the rows of x where they are asked for.
  /// @param x  [N, H] float32: the residual stream before this layer.
  void take(int64_t layer, const at::Tensor& x);
};

/// The layers and the non-layer weights of one model. All backends give the same numbers within
/// rounding.
///
/// Thread safety: none (scratch buffers).
class LlamaBackend {
 public:
  virtual ~LlamaBackend() = default;

  /// Takes the next layer, so that no two copies of all layers need to exist at once.
  virtual void add_layer(const LayerWeights& layer) = 0;

  /// @param cache     in layout(). Rows go to their places in it.
  /// @param layers    that run, ascending; the others are passed by.
  /// @param features  filled on the way; null: none are wanted. All layers that it names run.
  /// @returns         [N, H] in the embedding's dtype after the final norm; valid until the next
  ///                  call.
  virtual at::Tensor forward(const ForwardPlan& plan, KvCache& cache,
                             std::span<const int32_t> layers, Features* features) = 0;

  /// All layers alone, as Llama::run_layers().
  /// @param x  [N, H] float32.
  virtual at::Tensor run_layers(const ForwardPlan& plan, const at::Tensor& x, KvCache& cache) = 0;

  /// @param hidden  [N, H] in the embedding's dtype.
  /// @returns       [N, V] float32; valid until the next call.
  virtual at::Tensor logits(const at::Tensor& hidden) = 0;

  /// Whether a row's results are the same bits whatever rows run beside it and however its path is
  /// scattered over a tree.
  virtual bool rows_are_independent() const { return true; }

  /// Whether passes run on the execution context's threads.
  virtual bool uses_pool() const { return false; }

  virtual KvLayout layout() const { return KvLayout::Rows; }

  /// Whether a sequence's cache rows must lie in one piece.
  virtual bool reads_whole_slots() const { return false; }

  /// Rows that a cache needs behind the last position of a sequence.
  virtual int64_t rows_behind() const { return 0; }

  /// As Llama's.
  virtual void set_timer(StageTimer* timer) = 0;
  virtual std::array<int64_t, kNumForwardStages> weight_bytes() const = 0;

  virtual const char* name() const = 0;
};

/// The fastest that runs on the weights' device with their dtype and sizes; the reference for
/// Kernels::Reference and where no other does.
/// @param non_layer  weights of which the layers are added afterwards.
/// @throws UserError  quantized weights on a GPU whose kernels do not multiply them.
std::unique_ptr<LlamaBackend> make_llama_backend(const Weights& non_layer,
                                                 const ExecutionContext& execution);

}  // namespace medusa
