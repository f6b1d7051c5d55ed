// A small EAGLE-3 draft whose weights a rule fills, as tools/dev/make_eagle3_golden.py does, and
// the folder in which it would be published.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backbone/files/safetensors.h"
#include "base/file.h"
#include "heads/eagle3/eagle3_folder.h"
#include "tests/backbone/seeded_fill.h"
#include "tests/backbone/tiny_model.h"

namespace medusa::fixtures {

inline constexpr int64_t kDraftVocab = 40;

/// The target of the small draft.
inline ModelConfig eagle3_target_config() {
  ModelConfig config = tiny_config();
  config.num_layers = 8;
  return config;
}

/// Its weights, with the embedding that the golden numbers are of.
inline Weights eagle3_target(at::ScalarType dtype = at::kFloat) {
  Weights weights = tiny_weights(1, eagle3_target_config(), dtype);
  weights.embedding = weights.lm_head = seeded_fill("embed_tokens.weight", {130, 64}).to(dtype);
  return weights;
}

inline std::map<std::string, at::Tensor> small_eagle3_tensors() {
  const std::string layer = "midlayer.";
  std::map<std::string, at::Tensor> out;
  const auto add = [&out](const std::string& name, at::IntArrayRef shape) {
    out[name] = seeded_fill(name, shape);
  };
  add("fc.weight", {64, 192});
  for (const char* norm : {"hidden_norm", "input_layernorm", "post_attention_layernorm"})
    add(layer + norm + ".weight", {64});
  add(layer + "self_attn.q_proj.weight", {128, 128});
  add(layer + "self_attn.k_proj.weight", {64, 128});
  add(layer + "self_attn.v_proj.weight", {64, 128});
  add(layer + "self_attn.o_proj.weight", {64, 128});
  add(layer + "mlp.gate_proj.weight", {96, 64});
  add(layer + "mlp.up_proj.weight", {96, 64});
  add(layer + "mlp.down_proj.weight", {64, 96});
  add("norm.weight", {64});
  add("lm_head.weight", {kDraftVocab, 64});
  out["lm_head.weight"] *= 6;
  out["d2t"] = at::arange(kDraftVocab, at::kLong) * 2 + 1;  // row r is token 3 r + 1
  out["t2d"] =
      at::zeros({130}, at::kBool).index_fill(0, at::arange(kDraftVocab, at::kLong) * 3 + 1, 1);
  return out;
}

inline nlohmann::json small_eagle3_config() {
  return {{"architectures", {"LlamaForCausalLMEagle3"}},
          {"model_type", "llama"},
          {"hidden_act", "silu"},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 32},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},
          {"vocab_size", 130},
          {"draft_vocab_size", kDraftVocab}};
}

/// @param tensors  under any names.
inline void publish_eagle3(const std::filesystem::path& folder,
                           const std::map<std::string, at::Tensor>& tensors,
                           const nlohmann::json& config) {
  std::filesystem::create_directories(folder);
  write_tensors(folder / "model.safetensors", tensors, {});
  write_file(folder / "config.json", config.dump());
}

/// The draft as it is read from such a folder.
inline Eagle3Weights small_eagle3(const std::filesystem::path& folder) {
  publish_eagle3(folder, small_eagle3_tensors(), small_eagle3_config());
  return eagle3_weights(read_eagle3_files(folder), eagle3_target_config());
}

inline nlohmann::json eagle3_golden() {
  return nlohmann::json::parse(read_file(MEDUSA_SOURCE_DIR "/tests/golden/eagle3.json"));
}

/// [20, 3, 64] of the golden text's tokens but the last.
inline at::Tensor eagle3_features() {
  return seeded_fill("embed.features", {20, 192}).view({20, 3, 64});
}

}  // namespace medusa::fixtures
