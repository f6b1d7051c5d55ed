#include "infer/rules/typical_rule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "infer/row_math.h"

namespace medusa {
namespace {

/// The target's view of one node: what a child must exceed, and how to read a child's probability.
struct NodeView {
  float max = 0;
  double log_sum = 0;    // of exp((logit - max) / T)
  double threshold = 0;  // min(ε, δ · exp(-H))
};

NodeView view(const SoftmaxSums& sums, const TypicalConfig& config) {
  return {sums.max, sums.log_sum(),
          std::min(config.epsilon, config.delta * std::exp(-sums.entropy()))};
}

}  // namespace

Acceptance TypicalRule::accept(const CandidateTree& tree, const TargetLogits& logits,
                               int64_t root_position, const Random& random) const {
  const float scale = sampling_.temperature > 0 ? inverse_temperature(sampling_.temperature) : 1.0F;
  struct Reached {
    int32_t depth = 0;
    double log_probability = 0;  // of the path
  };
  const auto n = static_cast<size_t>(tree.num_verify);
  std::vector<std::optional<Reached>> reached(n);  // nodes that stand with all their ancestors
  std::vector<std::optional<NodeView>> views(n);
  reached[0] = Reached{};
  int32_t best = 0;
  for (int32_t i = 1; i < tree.num_verify; ++i) {  // parents come first
    const auto parent = static_cast<size_t>(tree.parents[static_cast<size_t>(i)]);
    if (!reached[parent]) continue;
    const auto row = logits.row(static_cast<int32_t>(parent));
    if (!views[parent]) views[parent] = view(softmax_sums(row, scale, logits.threads()), config_);
    const float logit = row[static_cast<size_t>(tree.tokens[static_cast<size_t>(i)])];
    const double log_p =
        static_cast<double>((logit - views[parent]->max) * scale) - views[parent]->log_sum;
    if (std::exp(log_p) <= views[parent]->threshold) continue;
    const Reached here{reached[parent]->depth + 1, reached[parent]->log_probability + log_p};
    reached[static_cast<size_t>(i)] = here;
    const Reached& other = *reached[static_cast<size_t>(best)];
    if (here.depth > other.depth ||
        (here.depth == other.depth && here.log_probability > other.log_probability))
      best = i;
  }

  Acceptance out;
  for (int32_t node = best; node > 0; node = tree.parents[static_cast<size_t>(node)])
    out.path.push_back(node);
  std::reverse(out.path.begin(), out.path.end());
  const auto row = logits.row(best);
  const int64_t position = root_position + static_cast<int64_t>(out.path.size());
  out.next = sampling_.temperature > 0
                 ? sample(row, sampling_, random, RandomUse::Accept, position, logits.threads())
                 : argmax(row);
  return out;
}

}  // namespace medusa
