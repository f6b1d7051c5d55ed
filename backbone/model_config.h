// The dimensions of a Llama-family model. Every one is required: none has a default.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/token.h"

namespace medusa {

class GgufFile;

struct ModelConfig {
  std::string architecture;          // a name of architecture.h
  int64_t num_layers = 0;            // L
  int64_t hidden_size = 0;           // H
  int64_t num_heads = 0;             // A
  int64_t num_kv_heads = 0;          // G, divides A
  int64_t head_size = 0;             // D
  int64_t rotary_dim = 0;            // R, dimensions of a head that are rotated; 0: all
  int64_t mlp_size = 0;              // inner width of the feed-forward part
  int64_t vocab_size = 0;            // V
  int64_t context = 0;               // most tokens of one sequence, as the model was trained
  double norm_epsilon = 0;           // of RMSNorm
  double rope_base = 0;              // theta of the rotary embedding
  std::vector<double> rope_factors;  // [R / 2] each frequency is divided by; empty: none is
  double rope_attention = 1;         // cosines and sines are multiplied by it
  std::vector<bool> no_rope;         // [L] whose queries and keys are not rotated; empty: all are
  std::vector<int64_t> windows;      // [L] last tokens that a layer sees, 0: all; empty: all do
  bool qkv_bias = false;             // query, key and value have a bias
  bool qk_norm = false;              // each head's query and key is normalized before RoPE
  bool tied_output = false;          // the LM head is the embedding
  std::vector<TokenId> eos;          // tokens that end a text, as the model's files say

  int64_t rotated() const { return rotary_dim > 0 ? rotary_dim : head_size; }
  bool uses_rope(int64_t layer) const {
    return no_rope.empty() || !no_rope[static_cast<size_t>(layer)];
  }
  int64_t window(int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<size_t>(layer)];
  }
};

/// The same model with only some of its layers.
/// @param layers  of config, ascending.
ModelConfig with_layers(const ModelConfig& config, std::span<const int64_t> layers);

/// GGUF tensors that belong to the settings: ModelConfig::rope_factors of a Llama; of LongRoPE for
/// texts within the first context and beyond it.
inline constexpr const char* kGgufRopeFactors = "rope_freqs.weight";
inline constexpr const char* kGgufShortFactors = "rope_factors_short.weight";
inline constexpr const char* kGgufLongFactors = "rope_factors_long.weight";

/// Reads config.json of a Hugging Face folder.
/// @throws UserError  a key is missing or mistyped, or the architecture is one we do not run.
ModelConfig read_hf_config(const std::filesystem::path& folder);

/// Reads the metadata of a GGUF file; the same errors.
ModelConfig read_gguf_config(const GgufFile& file);

}  // namespace medusa
