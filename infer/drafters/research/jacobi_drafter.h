// Jacobi decoding: a block of drafts is checked at once, and what the target would have put in
// their places are the drafts of the next step. Santilli et al., "Accelerating Transformer
// Inference for Translation via Parallel Decoding" (arXiv:2305.10427).
#pragma once

#include <vector>

#include "base/fields.h"
#include "infer/drafter.h"

namespace medusa {

struct JacobiConfig {
  int32_t block = 8;

  template <typename Fields>
  void fields(Fields& f) {
    f("block", block, "tokens drafted at the same time", between(1, 63));
  }
  void validate() const {}
};

/// Drafts start as random tokens of the text, and so do those that enter at the block's end. They
/// are the target's most probable tokens at every temperature, as the drafter knows of no rule.
class JacobiDrafter : public Drafter {
 public:
  explicit JacobiDrafter(const JacobiConfig& config) : config_(config) {}

  /// The chain of the drafts that the last step left.
  CandidateTree propose(const DraftContext& context, const Random& random) override;

  /// Keeps the target's answers to the drafts behind the accepted ones.
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  JacobiConfig config_;
  std::vector<TokenId> drafts_;  // for the places after the next root
};

}  // namespace medusa
