// Acceptance rules decide which candidates stand.
#pragma once

#include <vector>

#include "base/random.h"
#include "infer/candidate_tree.h"
#include "infer/logits/target_logits.h"

namespace medusa {

struct Acceptance {
  std::vector<int32_t> path;  // accepted nodes below the root, top down; may be empty
  TokenId next = 0;           // token the target adds after the last accepted node: the next root
};

/// Pure: the same arguments give the same answer, and calls may run at the same time. A rule asks
/// for the rows of those nodes alone that it reaches, and reaches no node whose token cannot come
/// (a logit of -infinity) after its parent.
class AcceptanceRule {
 public:
  virtual ~AcceptanceRule() = default;

  /// @param logits         row i: the target's prediction after node i.
  /// @param root_position  absolute position of the root; node i sits at root_position + depth(i).
  virtual Acceptance accept(const CandidateTree& tree, const TargetLogits& logits,
                            int64_t root_position, const Random& random) const = 0;

  /// True when the text (greedy, match) or its distribution (rejection) is the target's own.
  virtual bool lossless() const = 0;

  /// Whether other drafts give other tokens, of the same distribution or not; else they change only
  /// how many tokens a step gives.
  virtual bool depends_on_drafts() const { return !lossless(); }
};

}  // namespace medusa
