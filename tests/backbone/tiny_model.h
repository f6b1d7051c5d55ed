// A small random Llama in memory, the same for the same seed.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "backbone/weights.h"
#include "base/random.h"

namespace medusa {

/// Two layers, grouped heads, sizes that are no multiples of each other; V is no multiple of 16.
inline ModelConfig tiny_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.num_layers = 2;
  config.hidden_size = 64;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_size = 32;
  config.mlp_size = 96;
  config.vocab_size = 130;
  config.context = 1024;
  config.norm_epsilon = 1e-5;
  config.rope_base = 10000;
  config.tied_output = true;
  config.eos = {0};
  return config;
}

/// The same with heads that are normalized before RoPE, in four layers of which one has no RoPE
/// turn and two see the last tokens only.
inline ModelConfig uneven_config(ModelConfig config = tiny_config()) {
  config.num_layers = 4;
  config.qk_norm = true;
  config.rope_attention = 1.2;
  config.no_rope = {false, true, false, false};
  config.windows = {9, 0, 40, 0};
  return config;
}

/// A text of the tiny vocabulary.
inline std::vector<TokenId> random_tokens(uint64_t seed, int64_t count) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(Random(seed).bits(RandomUse::Init, i) % 130));
  return tokens;
}

/// Normally distributed weights, scaled so that activations keep their size from layer to layer;
/// norms near one. The fingerprint tells seeds apart.
inline Weights tiny_weights(uint64_t seed, const ModelConfig& config = tiny_config(),
                            at::ScalarType dtype = at::kFloat) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto matrix = [&](int64_t rows, int64_t columns) {
    const at::Tensor normal = at::randn({rows, columns}, generator, at::kFloat);
    return (normal / std::sqrt(static_cast<double>(columns))).to(dtype);
  };
  const auto norm_of = [&](int64_t size) {
    return 1 + 0.1 * at::randn({size}, generator, at::kFloat);
  };
  const auto norm = [&] { return norm_of(config.hidden_size); };
  const int64_t hidden = config.hidden_size, query = config.num_heads * config.head_size;
  Weights weights;
  weights.config = config;
  weights.fingerprint = "tiny:" + std::to_string(seed);
  weights.embedding = matrix(config.vocab_size, hidden);
  for (int64_t l = 0; l < config.num_layers; ++l) {
    LayerWeights layer;
    layer.attention_norm = norm();
    layer.qkv = matrix(query + 2 * config.num_kv_heads * config.head_size, hidden);
    if (config.qkv_bias)
      layer.qkv_bias = 0.5 * at::randn({layer.qkv.size(0)}, generator, at::kFloat);
    if (config.qk_norm) {
      layer.query_norm = norm_of(config.head_size);
      layer.key_norm = norm_of(config.head_size);
    }
    layer.output = matrix(hidden, query);
    layer.mlp_norm = norm();
    layer.gate_up = matrix(2 * config.mlp_size, hidden);
    layer.down = matrix(hidden, config.mlp_size);
    weights.layers.push_back(layer);
  }
  weights.final_norm = norm();
  weights.lm_head = config.tied_output ? weights.embedding : matrix(config.vocab_size, hidden);
  return weights;
}

/// The same weights on another device; a tied LM head stays the embedding.
inline Weights on_device(Weights weights, at::Device device) {
  const bool tied = weights.lm_head.is_same(weights.embedding);
  const auto move = [device](at::Tensor& tensor) {
    if (tensor.defined()) tensor = tensor.to(device);
  };
  move(weights.embedding);
  move(weights.lm_head);
  if (tied) weights.lm_head = weights.embedding;
  move(weights.final_norm);
  for (LayerWeights& layer : weights.layers)
    for (const auto& [name, part] : kLayerParts) move(layer.*part);
  return weights;
}

}  // namespace medusa
