// The lossy acceptances of blockwise parallel decoding (Stern, Shazeer and Uszkoreit,
// arXiv:1811.03115, §5): a draft stands when it is among the target's best few, and so many of a
// block stand whatever the target says.
#pragma once

#include "base/fields.h"
#include "infer/acceptance_rule.h"

namespace medusa {

struct BlockwiseRuleConfig {
  int64_t top_k = 1;
  int32_t min_block = 1;

  template <typename Fields>
  void fields(Fields& f) {
    f("top_k", top_k, "a draft stands among the target's so many best tokens; 1 is exact",
      between<int64_t>(1, 1000));
    f("min_block", min_block, "tokens that each step emits at least; more than 1 forces drafts",
      between(1, 64));
  }
  void validate() const {}
};

/// Takes, of several siblings that stand, the one that the target finds most probable; of forced
/// ones too. The token after the path is the target's most probable one.
class BlockwiseRule : public AcceptanceRule {
 public:
  explicit BlockwiseRule(const BlockwiseRuleConfig& config) : config_(config) {}

  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override;
  bool lossless() const override { return config_.top_k == 1 && config_.min_block == 1; }

 private:
  BlockwiseRuleConfig config_;
};

}  // namespace medusa
