#include "infer/rules/blockwise_rule.h"

#include <algorithm>
#include <limits>

#include "infer/sampling.h"

namespace medusa {
namespace {

/// The child that the target finds most probable; -1: there is none.
int32_t best_child(const CandidateTree& tree, int32_t node, std::span<const float> logits) {
  const auto logit = [&](int32_t i) {
    return logits[static_cast<size_t>(tree.tokens[static_cast<size_t>(i)])];
  };
  int32_t best = -1;
  for (int32_t i = node + 1; i < tree.num_verify; ++i)
    if (tree.parents[static_cast<size_t>(i)] == node && (best < 0 || logit(i) > logit(best)))
      best = i;
  return best;
}

bool cannot_come(std::span<const float> logits, TokenId token) {
  return logits[static_cast<size_t>(token)] == -std::numeric_limits<float>::infinity();
}

/// Whether fewer than k tokens come before this one, of equal logits the lower id first.
bool among_best(std::span<const float> logits, TokenId token, int64_t k) {
  const auto id = static_cast<size_t>(token);
  int64_t before = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    before += (logits[i] > logits[id] || (logits[i] == logits[id] && i < id)) ? 1 : 0;
  return before < k;
}

}  // namespace

Acceptance BlockwiseRule::accept(const CandidateTree& tree, const TargetLogits& logits,
                                 int64_t /*root_position*/, const Random& /*random*/) const {
  Acceptance out;
  for (int32_t node = 0;;) {
    const std::span<const float> row = logits.row(node);
    const int32_t child = best_child(tree, node, row);
    const bool forced = static_cast<int32_t>(out.path.size()) + 1 < config_.min_block;
    if (child < 0 || cannot_come(row, tree.tokens[static_cast<size_t>(child)]) ||
        !(forced || among_best(row, tree.tokens[static_cast<size_t>(child)], config_.top_k))) {
      out.next = argmax(row);
      return out;
    }
    out.path.push_back(child);
    node = child;
  }
}

}  // namespace medusa
