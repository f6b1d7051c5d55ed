// An EAGLE-3 draft at inference: features in, states that predict the next tokens out, along texts
// and the trees that grow behind them.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"
#include "backbone/linear.h"
#include "backbone/reference_layer.h"
#include "backbone/rope.h"
#include "heads/best_on_device.h"
#include "heads/eagle3/eagle3_weights.h"
#include "heads/text_cache.h"

namespace medusa {

/// The draft's weights, for all texts, in the target's dtype and on its device. GEMMs run on our
/// kernels where there are some (backbone/linear.h), the rest in LibTorch's ops.
///
/// Thread safety: none (the kernels' threads).
class Eagle3Model {
 public:
  /// @param target       whose embedding is kept (not a copy) where the draft has none.
  /// @param most_behind  rows that a tree may have behind a text, at most.
  Eagle3Model(const Eagle3Weights& weights, const Weights& target,
              const ExecutionContext& execution = {}, int64_t most_behind = 1024);

  std::span<const int32_t> feature_layers() const { return feature_layers_; }
  int64_t vocab_size() const { return std::ssize(tokens_); }  // V_d

  /// The most probable tokens after some states.
  struct Drafts {
    int64_t count = 0;              // k of each state, best first
    std::vector<TokenId> tokens;    // [n, k] of the target's vocabulary
    std::vector<double> log_probs;  // [n, k] under the softmax over the draft's vocabulary
  };
  /// @param states  [n, H] float32.
  /// @param count   k, at most vocab_size().
  /// @throws UserError  logits are not finite.
  Drafts drafts(const at::Tensor& states, int64_t count) const;

  /// @returns  [n, V_d] float32.
  at::Tensor logits(const at::Tensor& states) const;

 private:
  friend class Eagle3Text;
  at::Tensor fuse(const at::Tensor& features) const;
  at::Tensor run(const Segment& segment, const at::Tensor& hidden, KvCache& cache) const;
  KvCache make_cache(int64_t rows) const;

  at::ScalarType dtype() const { return embedding_.scalar_type(); }
  at::Device device() const { return embedding_.device(); }

  ModelConfig config_;
  std::vector<int32_t> feature_layers_;
  std::vector<TokenId> tokens_;
  at::Tensor embedding_, token_norm_, state_norm_, final_norm_;
  LayerWeights norms_;  // of the layer: its matrices are linears_
  Linear fuse_, lm_head_;
  std::array<Linear, 4> linears_;  // by LayerMatrix
  RopeTable rope_;
  int64_t most_behind_;
};

/// One text, with a cache of its own.
///
/// Thread safety: none.
class Eagle3Text {
 public:
  /// @param model  kept by reference; must outlive this.
  explicit Eagle3Text(Eagle3Model& model);

  /// Runs the text's next positions, which stay; what grow() ran is forgotten.
  /// @param features  [n, F, H_t] float32 on the model's device.
  /// @param tokens    [n] the token behind each.
  /// @returns         [1, H] float32: the state of the last position.
  at::Tensor extend(const at::Tensor& features, std::span<const TokenId> tokens);

  /// Runs more nodes of a tree behind the text.
  /// @param tokens   [N] of all nodes so far.
  /// @param parents  [N] -1: the text's last position.
  /// @param hidden   [n, H] float32: for each of the last n nodes the state of its parent. The
  ///                 nodes before ran in earlier calls.
  /// @returns        [n, H] float32: their states.
  at::Tensor grow(std::span<const TokenId> tokens, std::span<const int32_t> parents,
                  const at::Tensor& hidden);

  int64_t length() const { return cache_.length(); }  // positions that stayed

 private:
  Eagle3Model& model_;
  TextCache cache_;
};

}  // namespace medusa
