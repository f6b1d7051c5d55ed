#include "train/trainable_llama.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "backbone/rms_norm.h"
#include "base/check.h"

namespace medusa {
namespace {

at::Tensor leaf(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return tensor.detach()
      .to(at::kFloat, /*non_blocking=*/false, /*copy=*/true)
      .set_requires_grad(true);
}

/// x times a master, in the dtype of the frozen parts; the result joins the float32 residual
/// stream.
at::Tensor product(const at::Tensor& x, const at::Tensor& master, at::ScalarType dtype) {
  return at::linear(x.to(dtype), master.to(dtype));
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

at::Tensor TrainableLlama::attend(const LayerWeights& layer, const at::Tensor& x,
                                  const at::Tensor& positions,
                                  std::span<const int64_t> lengths) const {
  const ModelConfig& c = config_;
  const at::ScalarType dtype = lm_head_.scalar_type();
  const int64_t n = x.size(0), query_size = c.num_heads * c.head_size,
                kv_size = c.num_kv_heads * c.head_size;
  at::Tensor qkv = product(rms_norm(x, layer.attention_norm, c.norm_epsilon), layer.qkv, dtype);
  if (layer.qkv_bias.defined()) qkv = qkv + layer.qkv_bias.to(dtype);
  const auto parts = qkv.to(at::kFloat).split_with_sizes({query_size, kv_size, kv_size}, -1);
  const auto heads_first = [&](const at::Tensor& rows) {  // [1, heads, n, D]
    return rows.to(dtype).transpose(0, 1).unsqueeze(0);
  };
  const at::Tensor query =
      heads_first(apply_rope(parts[0].reshape({n, c.num_heads, -1}), positions, rope_));
  const at::Tensor key =
      heads_first(apply_rope(parts[1].reshape({n, c.num_kv_heads, -1}), positions, rope_));
  const at::Tensor value = heads_first(parts[2].reshape({n, c.num_kv_heads, -1}));
  std::vector<at::Tensor> mixed;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const auto part = [&](const at::Tensor& all) { return all.narrow(2, begin, length); };
    mixed.push_back(at::scaled_dot_product_attention(part(query), part(key), part(value), {}, 0.0,
                                                     /*is_causal=*/true, std::nullopt,
                                                     /*enable_gqa=*/true));
    begin += length;
  }
  const at::Tensor all = at::cat(mixed, 2).squeeze(0).transpose(0, 1).reshape({n, query_size});
  return product(all, layer.output, dtype).to(at::kFloat);
}

at::Tensor TrainableLlama::forward(std::span<const TokenId> tokens,
                                   std::span<const int64_t> lengths) const {
  const ModelConfig& c = config_;
  const at::ScalarType dtype = lm_head_.scalar_type();
  std::vector<int64_t> ids(tokens.begin(), tokens.end()), at_position;
  for (const int64_t length : lengths) {
    MEDUSA_ASSERT(length >= 1 && length <= c.context, length, c.context);
    for (int64_t i = 0; i < length; ++i) at_position.push_back(i);
  }
  MEDUSA_ASSERT(at_position.size() == ids.size(), at_position.size(), ids.size());
  const auto on_device = [&](const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).to(embedding_.device());
  };
  const at::Tensor positions = on_device(at_position);

  at::Tensor x = embedding_.index_select(0, on_device(ids)).to(at::kFloat);  // [tokens, H]
  for (const LayerWeights& layer : layers_) {
    x = x + attend(layer, x, positions, lengths);
    const at::Tensor gate_up =
        product(rms_norm(x, layer.mlp_norm, c.norm_epsilon), layer.gate_up, dtype);
    const auto halves = gate_up.chunk(2, -1);  // [tokens, I] each
    x = x + product(at::silu(halves[0]) * halves[1], layer.down, dtype).to(at::kFloat);
  }
  return rms_norm(x, final_norm_, c.norm_epsilon).to(dtype);
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
