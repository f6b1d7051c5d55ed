// What a head's probabilities are worth: temperature scaling (Guo et al., arXiv:1706.04599), so
// that products of several heads' probabilities can be compared. No LibTorch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"
#include "heads/head_drafts.h"

namespace medusa {

/// A head's drafts at a temperature T: p_i(T) = p_i^(1/T) / (Σ_j p_j^(1/T) + r^(1/T)), where
/// r = 1 - Σ_j p_j is all that is not among the drafts, taken as one outcome: of its tokens
/// nothing is kept. T = 1 leaves the probabilities as they are, a larger T evens them out.
/// @param log_probs  of a head's drafts, under its softmax.
/// @param out        [log_probs.size()] log p_i(T), at most 0.
void at_temperature(std::span<const float> log_probs, double temperature, std::span<double> out);

/// Finds the temperature at which each head's drafts are most probable to come true: the least
/// mean of -log p(T) of the true token's draft, or of the rest where it is not among them.
class TemperatureFit {
 public:
  explicit TemperatureFit(int64_t num_heads) : heads_(static_cast<size_t>(num_heads)) {}

  /// @param drafts  of all heads at the first positions of an answer, with root answer[i].
  /// @param answer  head k's true token at position i is answer[i + 1 + k]; positions that have
  ///                none for some head are left out.
  void add_answer(const HeadDrafts& drafts, std::span<const TokenId> answer);

  /// [K] between 1/8 and 8; 1 for a head that saw no position.
  std::vector<double> temperatures() const;

 private:
  /// What one head saw.
  struct Observations {
    int64_t num_outcomes = 0;         // top_k + 1
    std::vector<double> log_probs;    // [n, top_k + 1] of the drafts, then of the rest
    std::vector<int32_t> true_ranks;  // [n] top_k: the rest
  };
  static double fit(const Observations& seen);
  static double slope(const Observations& seen, double inverse_temperature);

  std::vector<Observations> heads_;  // [K]
};

}  // namespace medusa
