#include "train/trainable_llama.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "backbone/rms_norm.h"
#include "base/check.h"
#include "train/llama_layer.h"

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
    : config_(model.config),
      embedding_(model.embedding),
      lm_head_(model.lm_head),
      final_norm_(leaf(model.final_norm)),
      rope_(make_rope_table(model.config, model.embedding.device())) {
  MEDUSA_ASSERT(!layers.empty() && std::is_sorted(layers.begin(), layers.end()), layers.size());
  config_.num_layers = static_cast<int64_t>(layers.size());
  for (const int64_t i : layers) {
    const LayerWeights& from = model.layers.at(static_cast<size_t>(i));
    layers_.push_back({leaf(from.attention_norm), leaf(from.qkv), leaf(from.qkv_bias),
                       leaf(from.output), leaf(from.mlp_norm), leaf(from.gate_up),
                       leaf(from.down)});
  }
}

at::Tensor TrainableLlama::forward(std::span<const TokenId> tokens,
                                   std::span<const int64_t> lengths) const {
  const at::ScalarType dtype = lm_head_.scalar_type();
  const PackedTexts texts = pack_texts(tokens, lengths, config_.context, embedding_.device());
  at::Tensor x = embedding_.index_select(0, texts.ids).to(at::kFloat);  // [tokens, H]
  for (const LayerWeights& layer : layers_) {
    const LayerProduct product = [&](const at::Tensor& rows, LayerMatrix matrix) {
      return plain_product(rows, matrix_of(layer, matrix), dtype);
    };
    x = run_layer(config_, rope_, layer, product, texts, dtype, x);
  }
  return rms_norm(x, final_norm_, config_.norm_epsilon).to(dtype);
}

std::vector<std::pair<std::string, at::Tensor>> TrainableLlama::named_parameters() const {
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerWeights& layer = layers_[i];
    const std::string prefix = std::to_string(i) + ".";
    for (const auto& [name, tensor] :
         {std::pair{"attention_norm", layer.attention_norm}, std::pair{"qkv", layer.qkv},
          std::pair{"qkv_bias", layer.qkv_bias}, std::pair{"output", layer.output},
          std::pair{"mlp_norm", layer.mlp_norm}, std::pair{"gate_up", layer.gate_up},
          std::pair{"down", layer.down}})
      if (tensor.defined()) out.emplace_back(prefix + name, tensor);
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
  for (const LayerWeights& layer : layers_)
    out.layers.push_back({copy(layer.attention_norm, at::kFloat), copy(layer.qkv, dtype),
                          copy(layer.qkv_bias, at::kFloat), copy(layer.output, dtype),
                          copy(layer.mlp_norm, at::kFloat), copy(layer.gate_up, dtype),
                          copy(layer.down, dtype)});
  return out;
}

}  // namespace medusa
