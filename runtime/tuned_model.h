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

}  // namespace medusa
