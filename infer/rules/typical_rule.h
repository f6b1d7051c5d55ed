// Typical acceptance (Medusa, arXiv:2401.10774 §2.3.1): a candidate stands when the target finds it
// plausible enough, p > min(ε, δ · exp(-H(p))). Faster than sampling, and not the target's
// distribution.
#pragma once

#include "infer/acceptance_rule.h"
#include "infer/sampling.h"

namespace medusa {

struct TypicalConfig {
  double epsilon = 0.09;  // ε, hard threshold on p
  double delta = 0.3;     // δ, threshold relative to the entropy; the paper suggests √ε

  template <typename Fields>
  void fields(Fields& f) {
    f("epsilon", epsilon, "typical acceptance: hard threshold on the target's probability",
      between(0.0, 1.0));
    f("delta", delta, "typical acceptance: threshold relative to the entropy", between(0.0, 1.0));
  }
  void validate() const {}
};

/// Accepts the longest path of standing candidates; among equally long ones that of the highest
/// log-probability. The token after it is drawn from the target (the reference implementation takes
/// its most probable token instead, which makes its text deterministic at every temperature).
class TypicalRule : public AcceptanceRule {
 public:
  /// @param sampling  temperature 0: p and H at temperature 1, and the token after the path is the
  ///                  most probable one; else p, H and the draw under the temperature, and the
  ///                  filters for the draw.
  TypicalRule(const TypicalConfig& config, const SamplingConfig& sampling)
      : config_(config), sampling_(sampling) {}

  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override;
  bool lossless() const override { return false; }

 private:
  TypicalConfig config_;
  SamplingConfig sampling_;
};

}  // namespace medusa
