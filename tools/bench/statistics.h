// The paired bootstrap: how sure a speed-up is. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace medusa {

/// What two methods did on the same question.
struct PairedWork {
  double tokens = 0, seconds = 0;                    // the method's
  double baseline_tokens = 0, baseline_seconds = 0;  // plain decoding's
};

/// Tokens per second of all questions together, over the baseline's. Long answers count for more,
/// as they do for whoever waits for them.
double speedup(std::span<const PairedWork> questions);

struct Interval {
  double low = 0, high = 0;
};

/// 95 % interval of speedup() by the percentile bootstrap (Efron and Tibshirani 1993, §13.3):
/// questions are drawn with replacement, the two methods' work on a question stays together, so
/// that what makes a question long or the machine slow for a moment cancels. It says how the figure
/// would change with other questions of the same kind.
/// @param seed  the same seed gives the same interval.
/// @returns     nullopt for fewer than two questions: nothing can be said.
std::optional<Interval> speedup_interval(std::span<const PairedWork> questions, uint64_t seed,
                                         int64_t resamples = 2000);

}  // namespace medusa
