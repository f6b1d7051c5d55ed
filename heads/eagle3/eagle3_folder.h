// EAGLE-3 drafts as folders: as others publish them, and as medusa import keeps them for a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/formats/safetensors_file.h"
#include "heads/eagle3/eagle3_weights.h"

namespace medusa {

inline constexpr const char* kEagle3Manifest = "eagle3.json";

/// A draft's files, described and checked against each other; tensors point into mapped files.
/// Movable; a copy would point into the original.
struct Eagle3Files {
  Eagle3Files() = default;
  Eagle3Files(Eagle3Files&&) = default;
  Eagle3Files& operator=(Eagle3Files&&) = default;

  std::filesystem::path path;
  std::vector<std::shared_ptr<const void>> mapped;
  std::vector<SafetensorsEntry> tensors;  // under the names that EAGLE gives them: "fc.weight"
  std::string settings;                   // config.json as it is
  ModelConfig config;                     // of the one layer
  std::vector<int32_t> feature_layers;    // as config.json lists them; empty: it does not
  int64_t target_hidden = 0;              // H_t
  int64_t num_features = 0;               // F
  int64_t draft_vocab = 0;                // V_d
  std::vector<TokenId> tokens;            // [V_d] the target's token of each row of lm_head
  bool own_embedding = false;
  std::string dtype;  // of the matrices

  const SafetensorsEntry* find(const std::string& name) const;
};

/// Whether a folder, or the folder of a file, looks like an EAGLE-3 draft: its config.json says
/// draft_vocab_size or names the class of one.
bool is_eagle3(const std::filesystem::path& path);

/// @param path  a folder with config.json and tensors (.safetensors or pytorch_model.bin), or the
///              file of tensors in one.
/// @throws UserError  a file is missing or damaged; a tensor is missing, left over, quantized or of
///                    another shape than the others; d2t names tokens that are not there or one
///                    twice; a setting that we do not run.
Eagle3Files read_eagle3_files(const std::filesystem::path& path);

/// The layers whose features a draft reads of this model.
/// @throws UserError  the draft is of another hidden size or vocabulary, or reads layers that the
///                    model does not have.
std::vector<int32_t> feature_layers_for(const Eagle3Files& files, const ModelConfig& target);

/// The draft for a model.
/// @throws UserError  as feature_layers_for(); a number is not finite.
Eagle3Weights eagle3_weights(const Eagle3Files& files, const ModelConfig& target);

/// A line for people: "an EAGLE-3 draft of 32000 of 128256 tokens, features before layers 2, 16,
/// 29, F16".
std::string eagle3_text(const Eagle3Files& files, std::span<const int32_t> feature_layers);

/// What a kept draft says of itself.
struct Eagle3Manifest {
  std::string fingerprint;  // of the tensors
  std::string backbone;     // fingerprint of the model that it was imported for
  std::string source;       // where it comes from
};

/// Writes the draft as a folder that is complete or absent. Others read it as they read the
/// published one: the numbers are the same, t2d is left out.
/// @returns  what its manifest says.
Eagle3Manifest save_eagle3(const std::filesystem::path& folder, const Eagle3Files& files,
                           const std::string& backbone, const std::string& source);

/// A folder's manifest. @throws UserError  it is none of ours, or of another version.
Eagle3Manifest read_eagle3_manifest(const std::filesystem::path& folder);

/// A draft that save_eagle3() wrote.
/// @throws UserError  not finished, altered, or imported for another model.
Eagle3Files load_eagle3(const std::filesystem::path& folder, const std::string& backbone);

}  // namespace medusa
