// How long one whole decoding step takes with trees of different sizes, on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heads/choice_tree.h"
#include "heads/head_guesser.h"
#include "infer/backbone_target.h"

namespace medusa {

struct StepTimes {
  std::vector<int32_t> sizes;      // N, ascending
  std::vector<double> medians_ms;  // of a whole step: propose, verify, accept, commit
};

/// Milliseconds of the parts of a step.
struct StepParts {
  double propose = 0, verify = 0, accept = 0, commit = 0;

  double total() const { return propose + verify + accept + commit; }
};

/// One step of the decoding loop as decoder.cpp does it, greedy; then the cache is put back.
StepParts time_step(BackboneTarget& target, int32_t slot,
                    const std::function<CandidateTree()>& propose);

/// Times steps behind `context` tokens, by turns (turns.h); medians are kept. Heads behind a prefix
/// layer run it over one position with nothing before it; in a text they run it over those of the
/// last step, with the answer before them.
/// @param paths    best first; a tree of N nodes is the root and the first N - 1.
/// @param context  tokens to stand before the step; at least 2.
StepTimes time_steps(BackboneTarget& target, HeadGuesser& guesser, std::span<const RankPath> paths,
                     std::span<const TokenId> context, std::vector<int32_t> sizes, int64_t repeats);

/// The time of every size from 1 to the largest one timed, straight lines between those timed.
/// @returns [largest], entry N - 1.
std::vector<double> interpolate_ms(const StepTimes& times);

}  // namespace medusa
