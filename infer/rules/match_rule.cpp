#include "infer/rules/match_rule.h"

namespace medusa {

Acceptance MatchRule::accept(const CandidateTree& tree, const TargetLogits& logits,
                             int64_t root_position, const Random& random) const {
  Acceptance out;
  for (int32_t node = 0; node >= 0; ++root_position) {
    out.next = sample(logits.row(node), sampling_, random, RandomUse::Accept, root_position,
                      logits.threads());
    node = find_child(tree, node, out.next);
    if (node >= 0) out.path.push_back(node);
  }
  return out;
}

}  // namespace medusa
