// The Llama-family transformer: tokens -> hidden states -> logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backbone/execution_context.h"
#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"
#include "backbone/llama_backend.h"
#include "backbone/stage_timer.h"
#include "backbone/weights.h"

namespace medusa {

class WeightsReader;

/// A frozen backbone. Where rows_are_independent(), a row's results are the same bits whatever rows
/// run beside it and however its path is scattered over a tree.
///
/// Thread safety: none (scratch buffers).
class Llama {
 public:
  /// All of them look between two layers whether SIGINT or SIGTERM came, and throw Interrupted
  /// then.
  /// @param weights  without an lm_head logits() is not to be called.
  explicit Llama(Weights weights, ExecutionContext execution = {});
  /// Where weights are packed, each layer is as soon as it is read, and the plain copy let go: at
  /// no time are there two copies of the model.
  /// @param reader  of which nothing has been read yet.
  explicit Llama(WeightsReader& reader, ExecutionContext execution = {});
  /// @param backend  made of these weights, without layers yet: for tests, which emulate a GPU.
  Llama(Weights weights, std::unique_ptr<LlamaBackend> backend);

  const ModelConfig& config() const { return weights_.config; }
  const Weights& weights() const { return weights_; }  // without layers: the backend has them
  const ExecutionContext& execution() const { return execution_; }
  at::ScalarType dtype() const;
  at::Device device() const;

  /// What computes the passes.
  LlamaBackend& backend() const { return *backend_; }

  /// Whether passes run on our own kernels for CPUs and the context's threads.
  bool uses_pool() const { return backend_->uses_pool(); }

  /// Whether rows keep their bits whatever runs beside them; LibTorch's GEMMs do not promise it.
  bool rows_are_independent() const { return backend_->rows_are_independent(); }

  /// A cache in the layout that forward() reads.
  /// @param max_bytes  as KvBlocking's.
  KvCache make_cache(int32_t num_slots, int64_t capacity,
                     std::optional<int64_t> max_bytes = std::nullopt) const;

  /// The smallest max_bytes with which a cache has room for a slot of this capacity.
  int64_t cache_bytes(int64_t capacity) const;

  /// Runs the segments as one pass; their keys and values become tentative rows of the cache.
  /// @param layers    ascending; the others are passed by and leave their cache alone. Empty: all.
  /// @param features  filled on the way, where all layers run; null: none are wanted.
  /// @returns  [N, H] in dtype(), after the final norm, rows in segment order. Valid until the next
  ///           call (clone it to keep it).
  at::Tensor forward(std::span<const Segment> segments, KvCache& cache,
                     std::span<const int32_t> layers = {}, Features* features = nullptr);

  /// The layers alone, without embedding and final norm: what stands between two states. The
  /// segments say where the rows belong; their keys and values become tentative rows of the cache.
  /// @param x  [N, H] float32 on device(), rows in segment order: the residual stream.
  /// @returns  [N, H] float32 behind the last layer.
  at::Tensor run_layers(std::span<const Segment> segments, const at::Tensor& x, KvCache& cache);

  /// @param hidden  [N, H] in dtype().
  /// @returns       [N, V] float32, valid until the next call.
  at::Tensor logits(const at::Tensor& hidden);

  /// Runs a prompt in chunks and commits its rows.
  /// @returns  [H] state of the last token, a copy.
  at::Tensor prefill(int32_t slot, std::span<const TokenId> tokens, KvCache& cache);

  /// The same. @returns [n, H] bfloat16 on the CPU: the states of all tokens, as a dataset holds
  /// them.
  at::Tensor states(int32_t slot, std::span<const TokenId> tokens, KvCache& cache);

  /// "float32", "bfloat16", or how the weights of GEMMs are kept: "int8", "stored".
  const char* dtype_name() const;

  /// From now on passes report their parts to this clock, which slows them a little; null: none.
  /// It must outlive the passes.
  void set_timer(StageTimer* timer);

  /// Bytes of the weights that each part of a pass reads, by ForwardStage.
  std::array<int64_t, kNumForwardStages> weight_bytes() const { return backend_->weight_bytes(); }

  /// "AMX bfloat16 tiles", "LibTorch": for reports.
  const char* kernels() const { return backend_->name(); }

 private:
  void take_layers(const std::function<LayerWeights()>& next);
  void take_layers(std::vector<LayerWeights> layers);
  void run_prompt(int32_t slot, std::span<const TokenId> tokens, KvCache& cache,
                  const std::function<void(const at::Tensor& hidden)>& take);
  ForwardPlan checked_plan(std::span<const Segment> segments, KvCache& cache) const;

  Weights weights_;
  ExecutionContext execution_;
  StageTimer* timer_ = nullptr;  // not owned
  std::vector<int32_t> all_layers_;
  std::unique_ptr<LlamaBackend> backend_;
};

}  // namespace medusa
