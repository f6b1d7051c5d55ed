// Tokens per step of decoded or replayed answers, and how sure that number is. No LibTorch.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "heads/tree/choice_tree.h"

namespace medusa {

/// Sums the steps of one answer, or of several.
struct StepSum {
  double tokens = 0;
  double steps = 0;

  StepSum& operator+=(const StepSum& more) {
    tokens += more.tokens;
    steps += more.steps;
    return *this;
  }
};

/// Divides all tokens by all steps, with the 95 % interval of a percentile bootstrap over answers:
/// the steps of one answer are not independent.
/// @param answers  at least one; there is a step in some.
Estimate tokens_per_step(std::span<const StepSum> answers, const Random& random,
                         int64_t num_resamples = 1000);

}  // namespace medusa
