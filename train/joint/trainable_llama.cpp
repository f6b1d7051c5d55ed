#include "train/joint/trainable_llama.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "backbone/reference_layer.h"
#include "base/check.h"
#include "train/joint/llama_layer.h"

namespace medusa {
namespace {

at::Tensor leaf(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return tensor.detach()
      .to(at::kFloat, /*non_blocking=*/false, /*copy=*/true)
      .set_requires_grad(true);
}

}  // namespace

TrainableLlama::TrainableLlama(const Weights& model, std::span<const int64_t> layers)
    : config_(with_layers(model.config, layers)),
      embedding_(model.embedding),
      lm_head_(model.lm_head),
      final_norm_(leaf(model.final_norm)),
      rope_(make_rope_table(model.config, model.embedding.device())) {
  MEDUSA_ASSERT(!layers.empty() && std::is_sorted(layers.begin(), layers.end()), layers.size());
  for (const int64_t i : layers) {
    const LayerWeights& from = model.layers.at(static_cast<size_t>(i));
    LayerWeights& to = layers_.emplace_back();
    for (const auto& [name, part] : kLayerParts) to.*part = leaf(from.*part);
  }
}

at::Tensor TrainableLlama::forward(std::span<const TokenId> tokens,
                                   std::span<const int64_t> lengths) const {
  const at::ScalarType dtype = lm_head_.scalar_type();
  const PackedTexts texts = pack_texts(tokens, lengths, config_.context, embedding_.device());
  at::Tensor x = embedding_.index_select(0, texts.ids).to(at::kFloat);  // [tokens, H]
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerMatmul matmul = [&](const at::Tensor& rows, LayerMatrix matrix) {
      return reference_matmul(rows, matrix_of(layers_[i], matrix), dtype);
    };
    x = run_packed_layer(config_, static_cast<int64_t>(i), rope_, layers_[i], matmul, texts, dtype,
                         x);
  }
  return rms_norm(x, final_norm_, config_.norm_epsilon).to(dtype);
}

std::vector<std::pair<std::string, at::Tensor>> TrainableLlama::named_parameters() const {
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerWeights& layer = layers_[i];
    const std::string prefix = std::to_string(i) + ".";
    for (const auto& [name, part] : kLayerParts)
      if ((layer.*part).defined()) out.emplace_back(prefix + name, layer.*part);
  }
  out.emplace_back("final_norm", final_norm_);
  return out;
}

Weights TrainableLlama::weights() const {
  const at::ScalarType dtype = lm_head_.scalar_type();
  const auto copy = [](const at::Tensor& master, at::ScalarType to) {
    return master.defined() ? master.detach().to(to, /*non_blocking=*/false, /*copy=*/true)
                            : at::Tensor();
  };
  Weights out;
  out.config = config_;
  out.embedding = embedding_;
  out.lm_head = lm_head_;
  out.final_norm = copy(final_norm_, at::kFloat);
  for (const LayerWeights& layer : layers_) {
    LayerWeights& to = out.layers.emplace_back();
    for (const auto& [name, part] : kLayerParts)  // matrices in the model's dtype
      to.*part = copy(layer.*part, (layer.*part).dim() == 2 ? dtype : at::kFloat);
  }
  return out;
}

}  // namespace medusa
