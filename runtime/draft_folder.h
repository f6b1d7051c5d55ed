// Where the parts of drafters lie.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace medusa {

/// The files of drafters: each is read by those that need it (infer/drafter_spec.h), and may be
/// empty for others.
struct DraftFiles {
  std::filesystem::path heads{};  // folder of trained heads
  std::filesystem::path tree{};   // the choice tree
  std::filesystem::path store{};  // texts to look up; retrieval.store of the settings goes first
  std::filesystem::path draft_model{};  // folder or .gguf file; draft_model.model goes first
  std::filesystem::path layers{};       // what may be skipped; layer_skip.skip goes first
  std::filesystem::path eagle3{};       // folder of an imported draft; eagle3.draft goes first
};

// The folder that make-draft leaves: a model in Hugging Face's layout and draft.json, which says
// where it comes from.

inline constexpr const char* kDraftManifest = "draft.json";

struct DraftManifest {
  std::string backbone;         // fingerprint of the model it was cut from
  std::string tokenizer;        // fingerprint
  std::string dataset;          // fingerprint
  std::vector<int64_t> layers;  // of the backbone
  int64_t steps = 0;            // optimizer steps
  bool complete = false;        // false: an earlier program was interrupted
  double loss = 0;              // validation cross-entropy against the backbone, nats
  double agreement = 0;         // share of validation positions with the backbone's first choice
  int64_t num_validation = 0;   // positions
};

/// Gives the JSON of a manifest, as the file, inspect and --json list it.
nlohmann::ordered_json draft_json(const DraftManifest& manifest);

void write_draft_manifest(const std::filesystem::path& folder, const DraftManifest& manifest);

/// Reads a folder's manifest; nothing if it has none: a model from elsewhere.
/// @throws UserError  it cannot be read as one.
std::optional<DraftManifest> read_draft_manifest(const std::filesystem::path& folder);

}  // namespace medusa
