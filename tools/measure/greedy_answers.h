// Plain greedy answers with their hidden states, and which drafts of the heads were right on them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "heads/head_statistics.h"
#include "heads/heads_runner.h"
#include "heads/tree/step_sum.h"
#include "infer/backbone_target.h"
#include "infer/decoder.h"

namespace medusa {

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

}  // namespace medusa
