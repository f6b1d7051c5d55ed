// Parameters filled by a rule that another language can repeat:
// tools/dev/make_architecture_golden.py does, so that a model is compared with transformers without
// a file of weights.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "backbone/architecture.h"
#include "backbone/model_config.h"

namespace medusa {

/// The finaliser of splitmix64.
inline uint64_t mix_bits(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// FNV-1a.
inline uint64_t seed_of_name(std::string_view name) {
  uint64_t seed = 0xCBF29CE484222325ULL;
  for (const char byte : name) seed = (seed ^ static_cast<uint8_t>(byte)) * 0x100000001B3ULL;
  return seed;
}

/// Uniform around 1 for norms, around 0 for all else, as wide as keeps activations in size.
inline at::Tensor seeded_fill(const std::string& name, at::IntArrayRef shape) {
  at::Tensor out = at::empty(shape, at::kFloat);
  const auto contains = [&](const char* part) { return name.find(part) != std::string::npos; };
  const double middle = contains("norm") ? 1 : 0;
  const double width = contains("norm")    ? 0.2
                       : shape.size() == 1 ? 0.5
                       : contains("embed") ? 1.0
                                           : std::sqrt(3.0 / static_cast<double>(shape[1]));
  const uint64_t seed = seed_of_name(name);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const uint64_t bits = mix_bits(seed + static_cast<uint64_t>(i)) >> 40;
    const double noise = 2 * static_cast<double>(bits) / 16777216.0 - 1;
    out.data_ptr<float>()[i] = static_cast<float>(middle + width * noise);
  }
  return out;
}

/// Every parameter of a model under Hugging Face's name.
inline std::map<std::string, at::Tensor> seeded_parameters(const ModelConfig& config) {
  std::map<std::string, at::Tensor> all;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    all[name] = seeded_fill(name, shape);
  };
  const int64_t hidden = config.hidden_size, queries = config.num_heads * config.head_size;
  const int64_t keys = config.num_kv_heads * config.head_size;
  add("model.embed_tokens.weight", {config.vocab_size, hidden});
  add("model.norm.weight", {hidden});
  if (!config.tied_output) add("lm_head.weight", {config.vocab_size, hidden});
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "input_layernorm.weight", {hidden});
    add(prefix + "post_attention_layernorm.weight", {hidden});
    if (config.qk_norm)
      for (const char* part : {"q_norm", "k_norm"})
        add(prefix + "self_attn." + part + ".weight", {config.head_size});
    add(prefix + "self_attn.o_proj.weight", {hidden, queries});
    add(prefix + "mlp.down_proj.weight", {hidden, config.mlp_size});
    if (find_architecture(config.architecture)->fused_matrices) {
      add(prefix + "self_attn.qkv_proj.weight", {queries + 2 * keys, hidden});
      add(prefix + "mlp.gate_up_proj.weight", {2 * config.mlp_size, hidden});
      continue;
    }
    for (const auto& [part, rows] :
         {std::pair("q_proj", queries), std::pair("k_proj", keys), std::pair("v_proj", keys)}) {
      add(prefix + "self_attn." + part + ".weight", {rows, hidden});
      if (config.qkv_bias) add(prefix + "self_attn." + part + ".bias", {rows});
    }
    add(prefix + "mlp.gate_proj.weight", {config.mlp_size, hidden});
    add(prefix + "mlp.up_proj.weight", {config.mlp_size, hidden});
  }
  return all;
}

}  // namespace medusa
