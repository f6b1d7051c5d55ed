#include "train/joint/tuned_llama.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "backbone/reference_layer.h"
#include "base/check.h"
#include "base/error.h"
#include "train/finite_check.h"

namespace medusa {
namespace {

at::Tensor master_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return tensor.detach()
      .to(at::kFloat, /*non_blocking=*/false, /*copy=*/true)
      .set_requires_grad(true);
}

LayerWeights masters_of(const LayerWeights& from) {
  LayerWeights out;
  for (const auto& [name, part] : kLayerParts) out.*part = master_of(from.*part);
  return out;
}

/// A trained tensor as the model stores it: a copy in the dtype of what it began as.
at::Tensor as_stored(const at::Tensor& trained, const at::Tensor& was) {
  if (!trained.defined() || trained.is_same(was)) return was;
  return trained.detach().to(was.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

int64_t first_trained_layer(const JointConfig& config, int64_t num_layers) {
  if (config.part == TrainedPart::AllLayers) return 0;
  if (config.last_layers > num_layers)
    throw UserError(fmt::format(
        "train.joint.last_layers is {}, the backbone has {} layers, expected at most that many; "
        "lower it, or set train.joint.part to all_layers",
        config.last_layers, num_layers));
  return num_layers - config.last_layers;
}

TunedLlama::TunedLlama(const Weights& model, const JointConfig& config, uint64_t seed)
    : model_(model),
      layers_(model.layers),
      final_norm_(model.final_norm),
      rope_(make_rope_table(model.config, model.embedding.device())) {
  if (config.part == TrainedPart::Lora) {
    lora_.emplace(config.lora, model, seed);
    first_ = lora_->first_layer();
    return;
  }
  first_ = first_trained_layer(config, model.config.num_layers);
  for (size_t i = static_cast<size_t>(first_); i < layers_.size(); ++i)
    layers_[i] = masters_of(model.layers[i]);
  final_norm_ = master_of(model.final_norm);
}

PackedTexts TunedLlama::pack(std::span<const TokenId> tokens,
                             std::span<const int64_t> lengths) const {
  return pack_texts(tokens, lengths, model_.config.context, model_.embedding.device());
}

at::Tensor TunedLlama::embed(const PackedTexts& texts) const {
  return model_.embedding.index_select(0, texts.ids).to(at::kFloat);
}

at::Tensor TunedLlama::normed(const at::Tensor& x, const at::Tensor& norm) const {
  return rms_norm(x, norm, model_.config.norm_epsilon).to(model_.lm_head.scalar_type());
}

at::Tensor TunedLlama::forward_original(const PackedTexts& texts) const {
  const c10::NoGradGuard no_grad;
  const at::ScalarType dtype = model_.lm_head.scalar_type();
  at::Tensor x = embed(texts);  // [n, H]
  for (size_t i = 0; i < model_.layers.size(); ++i) {
    const LayerWeights& layer = model_.layers[i];
    const LayerMatmul matmul = [&](const at::Tensor& rows, LayerMatrix matrix) {
      return reference_matmul(rows, matrix_of(layer, matrix), dtype);
    };
    x = run_packed_layer(model_.config, static_cast<int64_t>(i), rope_, layer, matmul, texts, dtype,
                         x);
  }
  return normed(x, model_.final_norm);
}

at::Tensor TunedLlama::run_tuned_layer(int64_t layer, const PackedTexts& texts,
                                       const at::Tensor& x) const {
  const LayerWeights& weights = layers_[static_cast<size_t>(layer)];
  const at::ScalarType dtype = model_.lm_head.scalar_type();
  const LayerMatmul matmul = [&](const at::Tensor& rows, LayerMatrix matrix) {
    const at::Tensor y = reference_matmul(rows, matrix_of(weights, matrix), dtype);
    return lora_ ? lora_->add_to(y, rows, layer, matrix, dropout_) : y;
  };
  return run_packed_layer(model_.config, layer, rope_, weights, matmul, texts, dtype, x);
}

at::Tensor TunedLlama::forward(const PackedTexts& texts, const std::optional<Random>& dropout) {
  const c10::NoGradGuard no_grad;
  dropout_ = dropout;
  texts_ = texts;
  inputs_.clear();
  at::Tensor x = embed(texts);  // [n, H]
  for (int64_t layer = 0; layer < std::ssize(layers_); ++layer) {
    if (layer >= first_) inputs_.push_back(x);
    x = run_tuned_layer(layer, texts, x);
  }
  inputs_.push_back(x);
  return normed(x, final_norm_);
}

void TunedLlama::backward(const at::Tensor& gradient) {
  MEDUSA_ASSERT(texts_, "backward() without forward()");
  const c10::AutoGradMode grad(true);
  at::Tensor behind = gradient;  // of what the part gives
  const auto through = [&](const auto& part) {
    const at::Tensor x = inputs_.back().detach().set_requires_grad(true);
    inputs_.pop_back();
    part(x).backward(behind);
    behind = x.grad();
  };
  through([&](const at::Tensor& x) { return normed(x, final_norm_); });
  for (int64_t layer = std::ssize(layers_) - 1; layer >= first_; --layer)
    through([&](const at::Tensor& x) { return run_tuned_layer(layer, *texts_, x); });
  texts_.reset();
}

at::Tensor TunedLlama::lm_head() const {
  return lora_ ? lora_->merged_lm_head(model_.lm_head) : model_.lm_head;
}

NamedTensors TunedLlama::named_parameters() const {
  if (lora_) return lora_->named_parameters();
  NamedTensors out;
  for (int64_t layer = first_; layer < std::ssize(layers_); ++layer)
    add_named_layer(layers_[static_cast<size_t>(layer)], layer, out);
  out.emplace_back("final_norm", final_norm_);
  return out;
}

Weights TunedLlama::merged() const {
  const c10::NoGradGuard no_grad;
  Weights out = model_;
  out.fingerprint.clear();
  out.final_norm = as_stored(final_norm_, model_.final_norm);
  if (trains_lm_head()) {
    out.lm_head = lm_head();
    out.config.tied_output = false;  // the embedding stays
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerWeights &was = model_.layers[i], &now = layers_[i];
    for (const auto& [name, part] : kLayerParts)
      out.layers[i].*part = as_stored(now.*part, was.*part);
    if (!lora_) continue;
    for (const LayerMatrix which :
         {LayerMatrix::Qkv, LayerMatrix::Output, LayerMatrix::GateUp, LayerMatrix::Down})
      matrix_of(out.layers[i], which) =
          lora_->merged(matrix_of(now, which), static_cast<int64_t>(i), which);
  }
  return out;
}

}  // namespace medusa
