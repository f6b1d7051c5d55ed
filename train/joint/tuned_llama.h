// A backbone that is being trained: the one as it was and the one it becomes, in one set of
// weights. Memory holds the activations of one layer: its input is kept, the rest computed again
// when its gradient is due (gradient checkpointing, arXiv:1604.06174).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "backbone/rope.h"
#include "backbone/weights.h"
#include "base/random.h"
#include "train/adamw.h"
#include "train/joint/joint_config.h"
#include "train/joint/llama_layer.h"
#include "train/joint/lora.h"

namespace medusa {

/// The first layer of those that are trained whole.
/// @throws UserError  train.joint.last_layers is more than the model has.
int64_t first_trained_layer(const JointConfig& config, int64_t num_layers);

/// Adapters lie beside the model's matrices; whole layers are trained as float32 masters of their
/// own beside the ones they began as. Either way the model given stays as it is and is what
/// forward_original() runs: the teacher costs no second model.
///
/// Thread safety: none.
class TunedLlama {
 public:
  /// @param model  shared, never written; its dtype is what GEMMs compute in.
  /// @param seed   of the adapters' start.
  /// @throws UserError  more last layers than there are.
  TunedLlama(const Weights& model, const JointConfig& config, uint64_t seed);

  /// The model as it was.
  /// @returns  [n, H] states after the final norm, in the model's dtype, without autograd.
  at::Tensor forward_original(const PackedTexts& texts) const;

  /// The model as it is, likewise. Keeps what backward() needs.
  /// @param dropout  addresses the adapters' dropout; nothing: none, as when it is judged.
  at::Tensor forward(const PackedTexts& texts, const std::optional<Random>& dropout);

  /// Adds the gradients of the last forward() to the trained tensors'. Once for each forward().
  /// @param gradient  [n, H] of the loss by the states.
  void backward(const at::Tensor& gradient);

  /// The LM head as it is, [V, H] in the model's dtype; autograd flows to its adapter.
  at::Tensor lm_head() const;
  bool trains_lm_head() const { return lora_ && lora_->on_lm_head(); }

  const Weights& original() const { return model_; }
  PackedTexts pack(std::span<const TokenId> tokens, std::span<const int64_t> lengths) const;

  /// All trained tensors, float32 leaves: "layers.3.q_proj.a", "layers.29.qkv", "final_norm".
  NamedTensors named_parameters() const;

  /// The model as it is, adapters merged, in the dtypes of the model given. Tensors that did not
  /// change are shared. The fingerprint is empty: it is that of no file.
  Weights merged() const;

 private:
  at::Tensor embed(const PackedTexts& texts) const;
  at::Tensor run_tuned_layer(int64_t layer, const PackedTexts& texts, const at::Tensor& x) const;
  at::Tensor normed(const at::Tensor& x, const at::Tensor& norm) const;

  Weights model_;                     // as it was
  std::optional<LoraAdapters> lora_;  // undefined: whole layers are trained
  int64_t first_ = 0;                 // the lowest layer that is trained
  std::vector<LayerWeights> layers_;  // [L] as it is: the model's own tensors, or masters
  at::Tensor final_norm_;
  RopeTable rope_;

  // Of the last forward(), for backward().
  std::optional<PackedTexts> texts_;
  std::optional<Random> dropout_;
  std::vector<at::Tensor> inputs_;  // of layers first_ …, and of the final norm; [n, H] float32
};

}  // namespace medusa
