// The Llama-family transformer: tokens -> hidden states -> logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "backbone/kv_cache.h"
#include "backbone/row_plan.h"
#include "backbone/weights.h"

namespace medusa {

class FusedLlama;

/// Which code computes a pass.
enum class Kernels {
  Auto,   // the fastest that this machine and dtype have
  Plain,  // LibTorch's ops and plain loops: the slow twin that everything is tested against
};

/// A frozen backbone. In bfloat16 on a CPU, and in every dtype that claims it, a row's results are
/// the same bits whatever rows run beside it and however its path is scattered over a tree.
///
/// Thread safety: none (scratch buffers).
class Llama {
 public:
  explicit Llama(Weights weights, Kernels kernels = Kernels::Auto);
  ~Llama();

  const ModelConfig& config() const { return weights_.config; }
  const Weights& weights() const { return weights_; }
  at::ScalarType dtype() const;
  at::Device device() const;

  /// A cache in the layout that forward() reads.
  KvCache make_cache(int32_t num_slots, int64_t capacity) const;

  /// Runs the segments as one pass; their keys and values become tentative rows of the cache.
  /// @returns  [N, H] in dtype(), after the final norm, rows in segment order. Valid until the next
  ///           call (clone it to keep it).
  at::Tensor forward(std::span<const Segment> segments, KvCache& cache);

  /// @param hidden  [N, H] in dtype().
  /// @returns       [N, V] float32, valid until the next call.
  at::Tensor logits(const at::Tensor& hidden);

  /// Runs a prompt in chunks and commits its rows.
  /// @returns  [H] state of the last token, a copy.
  at::Tensor prefill(int32_t slot, std::span<const TokenId> tokens, KvCache& cache);

  /// "AMX bfloat16 tiles", "LibTorch": for reports.
  const char* kernels() const;

 private:
  Weights weights_;
  at::Tensor cos_, sin_;               // [context, D / 2] float32
  std::unique_ptr<FusedLlama> fused_;  // null: the plain path
};

}  // namespace medusa
