// What the joint stage leaves beside a model: tuned.json says which backbone it was, so that its
// text serves the tuned one too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace medusa {

inline constexpr const char* kTunedManifest = "tuned.json";

struct TunedManifest {
  std::string backbone;                               // fingerprint of the model as it was
  std::string dataset;                                // fingerprint
  std::vector<std::string> mixed_datasets;            // as HeadsManifest's
  std::string heads;                                  // fingerprint of those it began with
  int64_t steps = 0;                                  // optimizer steps
  std::string stopped;                                // what the guard found; empty: nothing
  std::vector<std::pair<std::string, double>> drift;  // names with units
  std::string settings;                               // resolved settings of the run, YAML text
};

/// As the manifest, inspect and --json list it.
nlohmann::ordered_json tuned_json(const TunedManifest& manifest);

void write_tuned_manifest(const std::filesystem::path& folder, const TunedManifest& manifest);

/// Nothing if the model has no manifest: it was not tuned here.
/// @param model  a model folder or file.
/// @throws UserError  it cannot be read as one.
std::optional<TunedManifest> read_tuned_manifest(const std::filesystem::path& model);

// Whether two models speak of the same tokens, as a draft model must.

/// Compares every token's bytes and whether it is special.
/// @param target, draft        the tokenizers
/// @param target_name, draft_name  what messages call their models
/// @throws UserError  names the first token that differs.
void check_same_tokenizer(const Tokenizer& target, const std::string& target_name,
                          const Tokenizer& draft, const std::string& draft_name);

}  // namespace medusa
