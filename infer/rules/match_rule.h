// The match rule: draw from the target, go down while the draw is a candidate.
#pragma once

#include "infer/acceptance_rule.h"
#include "infer/sampling.h"

namespace medusa {

/// Keeps, token for token, the text of plain sampling with the same seed: the draw at a position
/// uses numbers addressed by that position, whatever was proposed. Accepts a candidate with the
/// target's own probability, the most that any exact rule can for candidates chosen outright.
class MatchRule : public AcceptanceRule {
 public:
  /// @param sampling  temperature > 0.
  explicit MatchRule(const SamplingConfig& sampling) : sampling_(sampling) {}

  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override;
  bool lossless() const override { return true; }

 private:
  SamplingConfig sampling_;
};

}  // namespace medusa
