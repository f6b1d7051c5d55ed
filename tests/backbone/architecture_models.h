// Tiny models of every architecture, written as a Hugging Face folder and as a GGUF file. Which
// ones there are, and their settings, stands in tests/golden/architectures.json.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backbone/architecture.h"
#include "backbone/files/safetensors.h"
#include "backbone/llama.h"
#include "base/file.h"
#include "tests/backbone/seeded_fill.h"
#include "tests/base/gguf_builder.h"

namespace medusa {

inline nlohmann::json read_golden() {
  return nlohmann::json::parse(read_file(MEDUSA_SOURCE_DIR "/tests/golden/architectures.json"));
}

inline bool is_model(const nlohmann::json& entry) {
  return entry.is_object() && entry.contains("config");
}

inline std::filesystem::path write_folder(const std::filesystem::path& folder,
                                          const nlohmann::json& config) {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", config.dump());
  write_tensors(folder / "model.safetensors", seeded_parameters(read_hf_config(folder)), {});
  return folder;
}

/// [T, V] float32
inline at::Tensor logits_of(const Weights& weights, const std::vector<TokenId>& tokens) {
  const c10::InferenceMode no_grad;
  Llama llama(weights, Kernels::Reference);
  KvCache cache = llama.make_cache(1, static_cast<int64_t>(tokens.size()));
  const Segment all{cache.open(), tokens, {}};
  return llama.logits(llama.forward({&all, 1}, cache)).to(at::kFloat);
}

inline std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()};
}

/// Rows of Q or K as a Llama's GGUF orders them: dimensions i and i + D/2 of a head side by side.
/// @param rows  numbers, or the bytes that stand for them.
inline at::Tensor interleave_rope(const at::Tensor& rows, int64_t head_size) {
  return rows.view({-1, 2, head_size / 2, rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}

/// What stretches the rotary embedding, as llama.cpp's converter writes it.
inline void add_rope(fixtures::GgufBuilder& builder, const ModelConfig& config,
                     const nlohmann::json& settings, const std::string& architecture) {
  const nlohmann::json rope = settings.value("rope_scaling", nlohmann::json::object());
  const std::string prefix = architecture + ".rope.scaling.";
  const auto factors = [&](const char* name, const std::vector<double>& values) {
    const at::Tensor tensor = at::tensor(values, at::kFloat);
    builder.tensor(name, {tensor.numel()}, GgmlType::F32, bytes_of(tensor));
  };
  const auto set_original = [&](const nlohmann::json& where) {
    builder.set(prefix + "original_context_length",
                where.at("original_max_position_embeddings").get<uint32_t>());
  };
  if (rope.value("rope_type", "") == "yarn") {
    builder.set(prefix + "type", "yarn");
    builder.set(prefix + "factor", rope.at("factor").get<float>());
    set_original(rope);
  } else if (rope.contains("short_factor")) {
    factors(kGgufShortFactors, rope.at("short_factor").get<std::vector<double>>());
    factors(kGgufLongFactors, rope.at("long_factor").get<std::vector<double>>());
    set_original(settings);
    builder.set(prefix + "attn_factor", static_cast<float>(config.rope_attention));
  } else if (!config.rope_factors.empty()) {
    factors(kGgufRopeFactors, config.rope_factors);
  }
}

/// A matrix's rows of bytes, [n, bytes of a row] uint8, and their type.
struct StoredRows {
  GgmlType type = GgmlType::F32;
  at::Tensor bytes;
};
/// How a matrix is stored, by Hugging Face's name of it.
using StoreRows = std::function<StoredRows(const std::string& name, const at::Tensor& elements)>;

inline StoredRows plain_rows(const std::string&, const at::Tensor& elements) {
  return {GgmlType::F32, elements.contiguous().view(at::kByte)};
}

/// llama.cpp's name of a tensor.
inline std::string gguf_name(std::string name) {
  const std::pair<const char*, const char*> names[] = {{"model.embed_tokens", "token_embd"},
                                                       {"model.norm", "output_norm"},
                                                       {"lm_head", "output"},
                                                       {"model.layers.", "blk."},
                                                       {"input_layernorm", "attn_norm"},
                                                       {"self_attn.qkv_proj", "attn_qkv"},
                                                       {"self_attn.q_norm", "attn_q_norm"},
                                                       {"self_attn.k_norm", "attn_k_norm"},
                                                       {"self_attn.q_proj", "attn_q"},
                                                       {"self_attn.k_proj", "attn_k"},
                                                       {"self_attn.v_proj", "attn_v"},
                                                       {"self_attn.o_proj", "attn_output"},
                                                       {"post_attention_layernorm", "ffn_norm"},
                                                       {"mlp.gate_up_proj", "ffn_up"},
                                                       {"mlp.gate_proj", "ffn_gate"},
                                                       {"mlp.up_proj", "ffn_up"},
                                                       {"mlp.down_proj", "ffn_down"}};
  for (const auto& [from, to] : names)
    if (const size_t at = name.find(from); at != std::string::npos)
      name.replace(at, std::string(from).size(), to);
  return name;
}

/// The metadata of a model's GGUF file.
/// @param settings  of its config.json.
inline fixtures::GgufBuilder gguf_metadata(const ModelConfig& config,
                                           const nlohmann::json& settings) {
  // A Mistral is written as a Llama.
  const std::string architecture =
      find_architecture(config.architecture)->in_gguf ? config.architecture : "llama";
  const std::string prefix = architecture + ".";
  fixtures::GgufBuilder builder;
  builder.set("general.architecture", architecture.c_str());
  const auto set = [&](const char* key, int64_t value) {
    builder.set(prefix + key, static_cast<uint32_t>(value));
  };
  set("block_count", config.num_layers);
  set("embedding_length", config.hidden_size);
  set("attention.head_count", config.num_heads);
  set("attention.head_count_kv", config.num_kv_heads);
  set("attention.key_length", config.head_size);
  set("attention.value_length", config.head_size);
  set("feed_forward_length", config.mlp_size);
  set("context_length", settings.at("max_position_embeddings"));
  if (config.rotary_dim > 0) set("rope.dimension_count", config.rotary_dim);
  if (architecture == "phi3" || !config.windows.empty())
    set("attention.sliding_window",
        config.windows.empty() ? 0 : *std::ranges::max_element(config.windows));
  if (find_architecture(architecture)->windows == WindowRule::Switched && !config.windows.empty()) {
    std::vector<bool> slides;
    for (const int64_t window : config.windows) slides.push_back(window > 0);
    builder.booleans(prefix + "attention.sliding_window_pattern", slides);
  }
  builder.set(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(config.norm_epsilon));
  builder.set(prefix + "rope.freq_base", static_cast<float>(config.rope_base));
  builder.set("tokenizer.ggml.eos_token_id", 1u);
  return builder;
}

/// The model of write_folder() as a GGUF file.
inline fixtures::GgufBuilder gguf_model(const ModelConfig& config, const nlohmann::json& settings,
                                        const StoreRows& store = plain_rows) {
  fixtures::GgufBuilder builder = gguf_metadata(config, settings);
  const Architecture& architecture = *find_architecture(config.architecture);
  const bool uses_rope = architecture.gguf_interleaves_rope || !architecture.in_gguf;
  for (const auto& [name, parameter] : seeded_parameters(config)) {
    StoredRows rows = parameter.dim() == 2
                          ? store(name, parameter)
                          : StoredRows{GgmlType::F32, parameter.view({1, -1}).view(at::kByte)};
    if (uses_rope && (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight")))
      rows.bytes = interleave_rope(rows.bytes, config.head_size);
    builder.tensor(gguf_name(name), {parameter.sizes().rbegin(), parameter.sizes().rend()},
                   rows.type, bytes_of(rows.bytes));
  }
  add_rope(builder, config, settings, architecture.in_gguf ? config.architecture : "llama");
  return builder;
}

}  // namespace medusa
