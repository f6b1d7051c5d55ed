// How tokens are chosen from a draft model's predictions, so that the acceptance rule can stay
// exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "infer/sampling.h"

namespace medusa {

enum class DraftMode {
  Best,     // the most probable tokens: for greedy and typical acceptance
  Coupled,  // the tokens that the match rule would draw from the draft's distribution: target and
            // draft see the same noise, so they agree wherever they nearly agree
  Drawn,    // drawn from the draft's distribution, for the rejection rule
};

struct DraftedToken {
  TokenId id = 0;
  double probability = 0;  // under the draft model: at the sampling's temperature, at 1 for Best
};

/// Chooses siblings.
///
/// Thread safety: const, yes.
class DraftChoice {
 public:
  /// @param sampling  the target's own: what warps its distribution warps the draft's. Temperature
  ///                  above 0 unless the mode is Best.
  DraftChoice(DraftMode mode, const SamplingConfig& sampling);

  /// The count first different tokens (fewer when fewer are possible), to be tried in this order.
  /// Coupled and Drawn run one exponential race per position, whose first finishers are draws
  /// without replacement (Efraimidis and Spirakis 2006).
  /// @param position       absolute position of the node whose children these are.
  /// @param probabilities  if not null, for Drawn: one row of V float32 is appended for each token,
  ///                       the distribution that it was drawn from given its earlier siblings.
  std::vector<DraftedToken> choose(std::span<const float> logits, int32_t count,
                                   const Random& random, int64_t position,
                                   std::vector<float>* probabilities) const;

  DraftMode mode() const { return mode_; }

 private:
  DraftMode mode_;
  SamplingConfig sampling_;
};

}  // namespace medusa
