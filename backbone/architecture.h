// The architectures that the one backbone runs, and in what they differ. Everything here is a row
// of a table; a model whose difference is not a column needs a new column, not a special case.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace medusa {

struct Architecture {
  std::string_view name;               // Hugging Face's model_type, GGUF's general.architecture
  std::string_view class_name;         // in config.json's architectures
  bool in_gguf = true;                 // whether GGUF files carry this name
  bool qkv_bias = false;               // query, key and value have a bias
  bool gguf_turns_neighbours = false;  // GGUF orders a head's Q and K rows for its own rope
};

std::span<const Architecture> architectures();

/// nullptr for one that we do not run.
const Architecture* find_architecture(std::string_view name);

/// "llama, mistral or qwen2", for messages.
/// @param in_gguf  only those that GGUF files name.
std::string architecture_names(bool in_gguf);

}  // namespace medusa
