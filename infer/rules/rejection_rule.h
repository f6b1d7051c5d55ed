// Speculative sampling: candidates are accepted so that the text has the target's distribution.
// Leviathan et al. (arXiv:2211.17192), Chen et al. (arXiv:2302.01318); several siblings in turn as
// in SpecInfer (arXiv:2305.09781), without replacement as in Sequoia (arXiv:2402.12374).
#pragma once

#include "infer/acceptance_rule.h"
#include "infer/sampling.h"

namespace medusa {

/// Siblings x are tried in their order against p, the target's distribution: x stands with
/// probability min(1, p(x) / q(x)); if it does not, p becomes max(0, p - q), normalized. When none
/// stands the next token is drawn from what p has become. q is what x was drawn from given its
/// earlier siblings; for a token chosen outright it is 1 at x, so x stands with probability p(x)
/// and leaves p without x.
///
/// Exact when x really was drawn from q. Accepts more than the match rule only for drawn
/// candidates.
class RejectionRule : public AcceptanceRule {
 public:
  /// @param sampling  temperature > 0.
  explicit RejectionRule(const SamplingConfig& sampling) : sampling_(sampling) {}

  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override;
  bool lossless() const override { return true; }
  bool depends_on_drafts() const override { return true; }

 private:
  SamplingConfig sampling_;
};

}  // namespace medusa
