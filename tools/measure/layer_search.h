// Which layers of the backbone may be left out for drafting: medusa calibrate --layers.
// Paper: Draft & Verify (arXiv:2309.08168) §3.3, with a greedy search instead of a Bayesian one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backbone/llama.h"
#include "infer/step_cost.h"
#include "runtime/layer_choice.h"

namespace medusa {

/// A text that the backbone wrote behind a prompt.
struct AnsweredText {
  std::vector<TokenId> tokens;
  int64_t answer_start = 0;  // first token of the answer; at least 1
};

/// What the search weighs, in plain steps.
struct LayerCosts {
  double layer = 0;  // of one layer in a pass of one row
  StepCost pass;     // of a verifying pass, by its rows
};

/// Times passes of one row with all layers and with one, and of more rows with all: seconds.
/// @throws UserError  the model has one layer: nothing could be left out.
LayerCosts time_layers(Llama& llama);

/// What a chain of n drafted tokens gains when each is right with the same probability:
/// (1 - a^(n+1)) / (1 - a) tokens for n drafts and one pass of n + 1 rows. The best n is chosen.
/// @param draft_cost  of one drafted token, in plain steps.
LayerChoice expected_gain(double agreement, double draft_cost, const StepCost& pass_cost);

/// Removes one layer after the other, each time the one that harms agreement least among the six
/// that harmed it least when tried alone, and keeps the set with the largest expected speed-up.
/// Agreement counts the answers' tokens alone, as these are what is drafted, and is measured with
/// the draft's own cache, which is a little worse than the target's cache that decoding gives it.
/// Ctrl-C ends it with the best set so far, perhaps none.
/// @param llama  of at least two layers.
/// @param texts  at least one, each with some answer.
LayerChoice search_layers(Llama& llama, std::span<const AnsweredText> texts,
                          const LayerCosts& costs);

}  // namespace medusa
