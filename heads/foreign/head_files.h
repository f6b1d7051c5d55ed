// Opening what others publish as Medusa heads: a folder with config.json and tensors, or one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/formats/safetensors_file.h"

namespace medusa {

/// What a config.json says of heads. Published ones are incomplete and sometimes wrong.
struct HeadHints {
  std::filesystem::path file;  // empty: there is no config.json
  std::optional<int64_t> num_heads, layers_per_head;
  std::optional<int64_t> hidden_size, vocab_size, truncated_vocab_size;
  std::optional<bool> has_bias;            // medusa_fc_bias
  bool one_output = false;                 // original_lm_head
  double logit_scale = 1;                  // vLLM multiplies logits by it
  std::vector<std::string> architectures;  // empty: the key is not there
  std::string model_type, base_model;      // empty: not there
};

struct HeadFiles {
  std::filesystem::path path;                // what was asked for
  std::vector<std::filesystem::path> files;  // that the tensors come from
  std::vector<SafetensorsEntry> tensors;     // sorted by name; point into mapped
  std::vector<std::shared_ptr<const void>> mapped;
  HeadHints hints;
};

inline constexpr const char* kHeadsPt = "medusa_lm_head.pt";
inline constexpr const char* kModelBin = "pytorch_model.bin";
inline constexpr const char* kHeadsSafetensors = "medusa_lm_head.safetensors";

/// Opens the files of a folder: medusa_lm_head.safetensors, else medusa_lm_head.pt, else every
/// .safetensors file, else pytorch_model.bin.
/// @throws UserError  nothing is there; a file is damaged; a tensor is in two files; config.json is
///                    no JSON object, or has something else where a number belongs.
HeadFiles open_head_files(const std::filesystem::path& path);

}  // namespace medusa
