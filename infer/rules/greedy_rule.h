// Greedy acceptance: a candidate stands when it is the target's most probable token.
#pragma once

#include "infer/acceptance_rule.h"

namespace medusa {

/// Keeps the tokens of plain greedy decoding.
class GreedyRule : public AcceptanceRule {
 public:
  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override;
  bool lossless() const override { return true; }
};

}  // namespace medusa
