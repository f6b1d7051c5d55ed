// The file layers.json: which layers of the backbone drafting leaves out, and what that gains.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace medusa {

inline constexpr const char* kLayersFormat = "medusa-layers";

/// A set of layers that do not draft, and what it gains.
struct LayerChoice {
  std::string backbone;       // fingerprint
  std::vector<int64_t> skip;  // ascending; empty: nothing may be left out
  double agreement = 0;       // share of positions where the draft's first choice is the backbone's
  double cost = 1;            // time of a drafted token / of a plain step
  int32_t num_draft = 0;      // tokens per step that are best at this agreement and cost
  double speedup = 1;         // expected, over plain decoding
};

/// Gives the JSON of a choice, as the file, inspect and --json list it.
nlohmann::ordered_json layer_choice_json(const LayerChoice& choice);

void write_layer_choice(const std::filesystem::path& file, const LayerChoice& choice);

/// @throws UserError  missing or damaged.
LayerChoice read_layer_choice(const std::filesystem::path& file);

/// @param backbone  fingerprint it must have been measured on.
/// @throws UserError  missing, damaged, or of another model.
LayerChoice read_layer_choice(const std::filesystem::path& file, const std::string& backbone);

}  // namespace medusa
