#include "infer/rules/greedy_rule.h"

#include "infer/sampling.h"

namespace medusa {

Acceptance GreedyRule::accept(const CandidateTree& tree, const TargetLogits& logits,
                              int64_t /*root_position*/, const Random& /*random*/) const {
  Acceptance out;
  for (int32_t node = 0; node >= 0;) {
    out.next = argmax(logits.row(node));
    node = find_child(tree, node, out.next);
    if (node >= 0) out.path.push_back(node);
  }
  return out;
}

}  // namespace medusa
