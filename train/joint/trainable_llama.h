// A Llama whose layers can be trained: the same arithmetic as backbone/llama.h over whole
// sequences, with autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backbone/rope.h"
#include "backbone/weights.h"
#include "base/token.h"

namespace medusa {

/// Float32 masters of the layers and the final norm; embedding and LM head are frozen and shared
/// with the model that the layers were cut from.
///
/// Thread safety: none.
class TrainableLlama {
 public:
  /// @param model   kept in part: embedding and LM head. Its dtype is what GEMMs compute in.
  /// @param layers  that the cut keeps, ascending, at least one.
  TrainableLlama(const Weights& model, std::span<const int64_t> layers);

  const ModelConfig& config() const { return config_; }  // of the cut
  const at::Tensor& lm_head() const { return lm_head_; }

  /// Sequences packed one after the other; each sees itself only, from position 0.
  /// @param lengths  tokens of each sequence, together tokens.size(); none longer than the context.
  /// @returns  [tokens, H] in lm_head()'s dtype, states after the final norm. Autograd flows to the
  ///           masters.
  at::Tensor forward(std::span<const TokenId> tokens, std::span<const int64_t> lengths) const;

  /// All trained tensors under stable names ("0.qkv", "final_norm"), as leaves that take gradients.
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() const;

  /// The cut as weights of a model, in lm_head()'s dtype; norms float32.
  Weights weights() const;

 private:
  ModelConfig config_;
  at::Tensor embedding_, lm_head_;  // frozen
  std::vector<LayerWeights> layers_;
  at::Tensor final_norm_;
  RopeTable rope_;
};

}  // namespace medusa
