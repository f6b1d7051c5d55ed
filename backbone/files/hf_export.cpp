#include "backbone/files/hf_export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "backbone/architecture.h"
#include "backbone/files/rope_permutation.h"
#include "backbone/files/safetensors.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// Factors that are all the same are linear scaling; others have no name without their rule.
json rope_scaling(const ModelConfig& c, const fs::path& source) {
  if (c.rope_factors.empty() && c.rope_attention == 1) return nullptr;
  const double factor = c.rope_factors.empty() ? 1 : c.rope_factors[0];
  if (c.rope_attention != 1 || std::any_of(c.rope_factors.begin(), c.rope_factors.end(),
                                           [factor](double each) { return each != factor; }))
    throw UserError(fmt::format(
        "{}: its rotary embedding is stretched by factors without a rule, expected one that "
        "config.json can describe; use the Hugging Face folder of this model",
        source.string()));
  return {{"rope_type", "linear"}, {"factor", factor}};
}

/// What differs from layer to layer.
void set_layers(const ModelConfig& c, json& out) {
  if (!c.no_rope.empty()) {
    json turning = json::array();
    for (int64_t layer = 0; layer < c.num_layers; ++layer)
      turning.push_back(c.uses_rope(layer) ? 1 : 0);
    out["no_rope_layers"] = turning;
  }
  out.erase("layer_types");  // newer files say one for each layer
  const Architecture& architecture = *find_architecture(c.architecture);
  const bool switched = architecture.windows == WindowRule::Switched;
  const int64_t with_window = c.num_layers - std::ranges::count(c.windows, 0);
  if (c.windows.empty() || with_window == 0) {
    // What is not said may have a default: a window, or layers that have one.
    if (switched)
      out["use_sliding_window"] = false;
    else if (architecture.window > 0 && !out.contains("sliding_window"))
      out["sliding_window"] = nullptr;
    return;
  }
  out["sliding_window"] = *std::max_element(c.windows.begin(), c.windows.end());
  if (!switched) {
    if (with_window == c.num_layers) return;
    throw UserError(fmt::format(
        "the {} model has a window in {} of {} layers, expected one in all or none, as its "
        "config.json says one for all; begin with the model's own Hugging Face folder",
        c.architecture, with_window, c.num_layers));
  }
  out["use_sliding_window"] = true;
  json types = json::array();
  for (const int64_t window : c.windows)
    types.push_back(window > 0 ? "sliding_attention" : "full_attention");
  out["layer_types"] = types;
}

json config_json(const ModelConfig& c, const fs::path& source, at::ScalarType dtype) {
  const Architecture* architecture = find_architecture(c.architecture);
  json out{{"model_type", c.architecture},
           {"architectures", json::array({std::string(architecture->class_name)})},
           {"hidden_act", "silu"},
           {"hidden_size", c.hidden_size},
           {"intermediate_size", c.mlp_size},
           {"num_hidden_layers", c.num_layers},
           {"num_attention_heads", c.num_heads},
           {"num_key_value_heads", c.num_kv_heads},
           {"head_dim", c.head_size},
           {"vocab_size", c.vocab_size},
           {"max_position_embeddings", c.context},
           {"rms_norm_eps", c.norm_epsilon},
           {"rope_theta", c.rope_base},
           {"tie_word_embeddings", c.tied_output},
           {"torch_dtype", dtype == at::kFloat ? "float32" : "bfloat16"}};
  if (c.rotary_dim > 0)
    out["partial_rotary_factor"] =
        static_cast<double>(c.rotary_dim) / static_cast<double>(c.head_size);
  if (!c.eos.empty()) out["eos_token_id"] = c.eos;
  if (const json scaling = rope_scaling(c, source); !scaling.is_null())
    out["rope_scaling"] = scaling;
  set_layers(c, out);
  return out;
}

json patched_config(const fs::path& file, const ModelConfig& c, at::ScalarType dtype) {
  json out = json::parse(read_file(file));
  out["num_hidden_layers"] = c.num_layers;
  out["tie_word_embeddings"] = c.tied_output;
  for (const char* key : {"torch_dtype", "dtype"})  // the older name and the newer one
    if (out.contains(key)) out[key] = dtype == at::kFloat ? "float32" : "bfloat16";
  out.erase("quantization_config");  // of 8-bit floats: what is written is not
  set_layers(c, out);
  return out;
}

/// Queries and keys in the order of a file with partial RoPE.
at::Tensor in_file_order(const at::Tensor& qkv, const ModelConfig& c) {
  std::vector<int64_t> rows = rope_permutation(c, c.num_heads + c.num_kv_heads, false);
  if (rows.empty()) return qkv;
  while (std::ssize(rows) < qkv.size(0)) rows.push_back(std::ssize(rows));
  return qkv.index_select(0, at::tensor(rows).to(qkv.device()));
}

void add_layer(const LayerWeights& layer, const ModelConfig& c, int64_t index,
               std::map<std::string, at::Tensor>& out) {
  const std::string prefix = fmt::format("model.layers.{}.", index);
  const int64_t query = c.num_heads * c.head_size, kv = c.num_kv_heads * c.head_size;
  const at::ScalarType dtype = layer.qkv.scalar_type();
  const auto split = [&](const at::Tensor& all, const char* kind) {
    const auto parts = all.to(dtype).split_with_sizes({query, kv, kv}, 0);
    out[prefix + "self_attn.q_proj." + kind] = parts[0].contiguous();
    out[prefix + "self_attn.k_proj." + kind] = parts[1].contiguous();
    out[prefix + "self_attn.v_proj." + kind] = parts[2].contiguous();
  };
  const bool fused = find_architecture(c.architecture)->fused_matrices;
  if (fused)
    out[prefix + "self_attn.qkv_proj.weight"] = in_file_order(layer.qkv, c);
  else
    split(layer.qkv, "weight");
  if (layer.qkv_bias.defined()) split(layer.qkv_bias, "bias");
  if (layer.query_norm.defined()) {
    out[prefix + "self_attn.q_norm.weight"] = layer.query_norm.to(dtype);
    out[prefix + "self_attn.k_norm.weight"] = layer.key_norm.to(dtype);
  }
  out[prefix + "input_layernorm.weight"] = layer.attention_norm.to(dtype);
  out[prefix + "self_attn.o_proj.weight"] = layer.output;
  out[prefix + "post_attention_layernorm.weight"] = layer.mlp_norm.to(dtype);
  out[prefix + "mlp.down_proj.weight"] = layer.down;
  if (fused) {
    out[prefix + "mlp.gate_up_proj.weight"] = layer.gate_up;
    return;
  }
  const auto halves = layer.gate_up.chunk(2, 0);
  out[prefix + "mlp.gate_proj.weight"] = halves[0].contiguous();
  out[prefix + "mlp.up_proj.weight"] = halves[1].contiguous();
}

}  // namespace

Weights narrowed(Weights weights) {
  const auto narrow = [](at::Tensor& tensor) {
    if (tensor.defined()) tensor = tensor.to(at::kBFloat16);
  };
  const bool tied = weights.lm_head.is_same(weights.embedding);
  narrow(weights.embedding);
  if (tied)
    weights.lm_head = weights.embedding;
  else
    narrow(weights.lm_head);
  for (LayerWeights& layer : weights.layers)
    for (at::Tensor* tensor : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down})
      narrow(*tensor);
  return weights;
}

void write_hf_model(const fs::path& folder, const Weights& weights, const fs::path& source) {
  const ModelConfig& c = weights.config;
  const at::ScalarType dtype = weights.embedding.scalar_type();
  const bool from_folder = fs::is_directory(source);
  const json config = from_folder ? patched_config(source / "config.json", c, dtype)
                                  : config_json(c, source, dtype);
  write_file(folder / "config.json", json_text(config, 2) + "\n");
  if (from_folder)
    for (const char* name :
         {"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
          "added_tokens.json", "vocab.json", "merges.txt", "tokenizer.gguf",
          "generation_config.json", "chat_template.jinja"})
      if (fs::exists(source / name)) write_file(folder / name, read_file(source / name));

  std::map<std::string, at::Tensor> tensors;
  tensors["model.embed_tokens.weight"] = weights.embedding;
  tensors["model.norm.weight"] = weights.final_norm.to(dtype);
  if (!c.tied_output) tensors["lm_head.weight"] = weights.lm_head;
  for (size_t i = 0; i < weights.layers.size(); ++i)
    add_layer(weights.layers[i], c, static_cast<int64_t>(i), tensors);
  write_tensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
}

}  // namespace medusa
