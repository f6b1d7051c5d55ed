// Tokens per step as calibration predicts them beside those of actual decoding.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "heads/tree/choice_tree.h"
#include "runtime/model.h"
#include "tools/run/run_config.h"

namespace medusa {

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
