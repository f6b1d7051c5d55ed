#include "infer/rules/rejection_rule.h"

#include <algorithm>
#include <optional>

namespace medusa {
namespace {

/// What is left of the target's distribution after the candidates that did not stand.
class Residual {
 public:
  Residual(std::span<const float> logits, const SamplingConfig& sampling, ThreadPool* threads)
      : tokens_(target_distribution(logits, sampling, threads)) {}

  double probability(TokenId token) const {
    for (const WeightedToken& each : tokens_)
      if (each.id == token) return each.probability / sum_;
    return 0;
  }

  /// Takes q away; undefined: all of one token.
  void take(TokenId token, const std::optional<std::span<const float>>& q) {
    std::vector<WeightedToken> left;
    double sum = 0;
    for (WeightedToken each : tokens_) {
      const double drafted = q ? static_cast<double>((*q)[static_cast<size_t>(each.id)])
                               : (each.id == token ? 1.0 : 0.0);
      each.probability = each.probability / sum_ - drafted;
      if (each.probability <= 0) continue;
      sum += each.probability;
      left.push_back(each);
    }
    if (left.empty()) return;  // p equals q but for rounding: p is what the next token comes from
    tokens_ = std::move(left);
    sum_ = sum;
  }

  TokenId draw_from(const Random& random, int64_t position) const {
    return draw(tokens_, random, RandomUse::Residual, position);
  }

 private:
  std::vector<WeightedToken> tokens_;
  double sum_ = 1;  // of their probabilities
};

}  // namespace

Acceptance RejectionRule::accept(const CandidateTree& tree, const TargetLogits& logits,
                                 int64_t root_position, const Random& random) const {
  Acceptance out;
  for (int32_t node = 0;; ++root_position) {
    Residual residual(logits.row(node), sampling_, logits.threads());
    int32_t stands = -1;
    uint64_t tried = 0;
    for (int32_t i = node + 1; i < tree.num_verify && stands < 0; ++i) {
      if (tree.parents[static_cast<size_t>(i)] != node) continue;
      const TokenId token = tree.tokens[static_cast<size_t>(i)];
      std::optional<std::span<const float>> q;
      if (tree.draft_probs.defined()) q = logits_row(tree.draft_probs, i);
      const double drafted = q ? static_cast<double>((*q)[static_cast<size_t>(token)]) : 1.0;
      const double u = random.uniform(RandomUse::Accept, root_position, tried++);
      if (u * drafted < residual.probability(token))
        stands = i;
      else
        residual.take(token, q);
    }
    if (stands < 0) {
      out.next = residual.draw_from(random, root_position);
      return out;
    }
    out.path.push_back(stands);
    node = stands;
  }
}

}  // namespace medusa
