// Which layers of the backbone may be left out for drafting: medusa calibrate --layers.
// Paper: Draft & Verify (arXiv:2309.08168) §3.3, with a greedy search instead of a Bayesian one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backbone/llama.h"
#include "infer/step_cost.h"
#include "tools/run_config.h"

namespace medusa {

inline constexpr const char* kLayersFormat = "medusa-layers";

/// A set of layers that do not draft, and what it is worth.
struct LayerChoice {
  std::string backbone;       // fingerprint
  std::vector<int64_t> skip;  // ascending; empty: nothing may be left out
  double agreement = 0;       // share of positions where the draft's first choice is the backbone's
  double cost = 1;            // time of a drafted token / of a plain step
  int32_t num_draft = 0;      // tokens per step that are best at this agreement and cost
  double speedup = 1;         // expected, over plain decoding
};

/// What a chain of n drafted tokens gains when each is right with the same probability:
/// (1 - a^(n+1)) / (1 - a) tokens for n drafts and one pass of n + 1 rows. The best n is chosen.
/// @param draft_cost  of one drafted token, in plain steps.
LayerChoice expected_gain(double agreement, double draft_cost, const StepCost& pass_cost);

/// Removes one layer after the other, each time the one that harms agreement least among the six
/// that harmed it least when tried alone, and keeps the set with the largest expected speed-up.
/// Agreement is measured on validation text with the draft's own cache, which is a little worse
/// than the target's cache that decoding gives it.
/// @throws UserError  no dataset, or none of this model.
LayerChoice search_layers(const RunConfig& config, Llama& llama);

void write_layer_choice(const std::filesystem::path& file, const LayerChoice& choice);

/// @throws UserError  missing or damaged.
LayerChoice read_layer_choice(const std::filesystem::path& file);

/// @param backbone  fingerprint it must have been measured on.
/// @throws UserError  missing, damaged, or of another model.
LayerChoice read_layer_choice(const std::filesystem::path& file, const std::string& backbone);

}  // namespace medusa
