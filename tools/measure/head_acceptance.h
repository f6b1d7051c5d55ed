// How often heads are right on a model's own answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heads/medusa_heads.h"
#include "runtime/model.h"

namespace medusa {

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

}  // namespace medusa
