// What heads and trees get right on a model's own greedy answers, measured and predicted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "heads/head_statistics.h"
#include "heads/heads_checkpoint.h"
#include "heads/heads_runner.h"
#include "heads/medusa_heads.h"
#include "heads/tree/choice_tree.h"
#include "heads/tree/step_sum.h"
#include "infer/backbone_target.h"
#include "infer/decoder.h"
#include "runtime/model.h"
#include "tools/run/run_config.h"

namespace medusa {

/// A greedy answer with its hidden states.
struct GreedyAnswer {
  std::vector<TokenId> tokens;
  std::vector<at::Tensor> hidden;  // [tokens] of [H]: the state at the token before each
  StepSum steps;
};

/// Decodes with a drafter; states are kept on request. Ctrl-C ends it early.
GreedyAnswer decode_greedy(BackboneTarget& target, const DrafterFactory& make_drafter,
                           std::vector<TokenId> prompt, const DecodeLimits& limits,
                           bool keep_hidden);

/// Adds which drafts would have been right at each of the answer's tokens; its states were kept.
/// An answer shorter than the heads look ahead adds nothing.
void add_drafts(HeadStatistics& statistics, HeadsRunner& runner, const GreedyAnswer& answer);

// How often heads are right on a model's own answers.

struct HeadAcceptance {
  int64_t num_answers = 0, num_positions = 0;
  std::vector<double> top_1, top_5;  // [K] share of positions where (one of) its drafts was right
  double chain_tokens_per_step = 1;  // of the heads' first drafts as one chain, replayed
};

/// Answers the prompts plainly and greedily, then asks the heads at every position.
/// @param prompts  user messages.
/// @throws UserError  no answer is longer than the heads look ahead.
HeadAcceptance measure_acceptance(const Model& model, const MedusaHeads& heads,
                                  const std::vector<std::string>& prompts, int32_t max_new_tokens);

// How good heads were on validation text, as the stages of medusa train tell it.

/// A list with an object for each head.
nlohmann::ordered_json quality_json(const std::vector<HeadQuality>& heads);

/// A line for each head, for people, on stderr.
void print_quality(const std::vector<HeadQuality>& heads);

// Tokens per step as calibration predicts them beside those of actual decoding.

/// All of the same choice tree, greedy, with 95 % intervals over answers.
struct Prediction {
  std::optional<Estimate> calibrated;  // as the tree file says: from the validation answers
  Estimate everywhere;  // from plain answers to these questions, each position taken for a step
  Estimate replayed;    // from the same answers, steps where decoding would have begun them
  Estimate measured;    // decoding them with the tree
  int64_t num_answers = 0;
};

/// Answers the first prompt of each question twice, plainly and with the tree.
/// @throws UserError  no question fits; heads or tree are missing or do
///                    not fit; every answer is shorter than the heads look ahead.
Prediction predict(const RunConfig& config, const Model& model,
                   const std::vector<Prompt>& questions);

/// The lines for people: each estimate, and its ratio to the measured one.
std::string prediction_text(const Prediction& prediction);

nlohmann::json prediction_json(const Prediction& prediction);

}  // namespace medusa
