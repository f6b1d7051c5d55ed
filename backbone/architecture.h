// The architectures that the one backbone runs, and in what they differ. Everything here is a row
// of a table; a model whose difference is not a column needs a new column, not a special case.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace medusa {

/// When some layers of a Hugging Face model see only the last tokens (`sliding_window`).
enum class WindowRule {
  Never,     // the architecture has no windows
  Always,    // every layer, where config.json gives a size
  Switched,  // some layers, where it also sets use_sliding_window
};

struct Architecture {
  std::string_view name;               // Hugging Face's model_type, GGUF's general.architecture
  std::string_view class_name;         // in config.json's architectures
  bool in_gguf = true;                 // whether GGUF files carry this name
  bool qkv_bias = false;               // query, key and value have a bias
  bool qk_norm = false;                // each head's query and key is normalized before RoPE
  bool fused_matrices = false;         // files hold Q, K and V as one matrix, gate and up as one
  bool gguf_interleaves_rope = false;  // GGUF orders a head's Q and K rows for its own rope
  bool partial_rotary = false;         // files may say that only some dimensions are rotated
  int64_t no_rope_interval = 0;        // every so many layers one has no RoPE; 0: all have it
  WindowRule windows = WindowRule::Never;
  int64_t window = 0;        // where config.json does not say; 0: none
  bool tied_output = false;  // likewise
  double rope_base = 10000;  // likewise
};

std::span<const Architecture> architectures();

/// nullptr for one that we do not run.
const Architecture* find_architecture(std::string_view name);

/// "llama, mistral or qwen2", for messages.
/// @param in_gguf  only those that GGUF files name.
std::string architecture_names(bool in_gguf);

}  // namespace medusa
