// The dimensions of a Llama-family model. Every one is required: none has a default.
#pragma once

#include <cstdint>
#include <filesystem>
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
  int64_t mlp_size = 0;              // inner width of the feed-forward part
  int64_t vocab_size = 0;            // V
  int64_t context = 0;               // most tokens of one sequence, as the model was trained
  double norm_epsilon = 0;           // of RMSNorm
  double rope_base = 0;              // theta of the rotary embedding
  std::vector<double> rope_factors;  // [D / 2] each frequency is divided by; empty: none is
  bool qkv_bias = false;             // query, key and value have a bias
  bool tied_output = false;          // the LM head is the embedding
  std::vector<TokenId> eos;          // tokens that end a text, as the model's files say
};

/// A GGUF tensor that belongs to the settings: ModelConfig::rope_factors.
inline constexpr const char* kGgufRopeFactors = "rope_freqs.weight";

/// Reads config.json of a Hugging Face folder.
/// @throws UserError  a key is missing or mistyped, or the architecture is one we do not run.
ModelConfig read_hf_config(const std::filesystem::path& folder);

/// Reads the metadata of a GGUF file; the same errors.
ModelConfig read_gguf_config(const GgufFile& file);

}  // namespace medusa
