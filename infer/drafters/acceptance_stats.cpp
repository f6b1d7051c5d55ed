#include "infer/drafters/acceptance_stats.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int32_t kLevels = 8;  // of confidence, from 0 to 1
constexpr int32_t kMostSiblings = 1024;

}  // namespace

/// [N] of all nodes; the root's means nothing.
std::vector<ProposalStats::NodeKind> ProposalStats::kinds_of(const CandidateTree& tree) const {
  const auto n = static_cast<size_t>(tree.size());
  std::vector<NodeKind> kinds(n);
  if (!place_rates_.empty()) {
    MEDUSA_ASSERT(n <= place_rates_.size(), n, place_rates_.size());
    for (size_t i = 1; i < n; ++i) kinds[i] = {static_cast<int32_t>(i), place_rates_[i]};
    return kinds;
  }
  std::vector<int32_t> depths(n, 0), children(n, 0);
  for (size_t i = 1; i < n; ++i) {
    const auto parent = static_cast<size_t>(tree.parents[i]);
    depths[i] = depths[parent] + 1;
    const int32_t sibling = children[parent]++;
    if (tree.confidences.empty()) {
      kinds[i] = {kLevels + kMostSiblings * depths[i] + sibling,
                  0.5 / ((1 + sibling) * (1 + sibling))};
    } else {
      const double confidence = tree.confidences[i];
      kinds[i] = {std::min(static_cast<int32_t>(confidence * kLevels), kLevels - 1), confidence};
    }
  }
  return kinds;
}

double AcceptanceStats::rate(int32_t kind, double confidence) const {
  if (all_texts_) confidence = all_texts_->rate(kind, confidence);
  const auto found = counts_.find(kind);
  if (found == counts_.end()) return confidence;
  const Count& count = found->second;
  return (count.confidence_trials * confidence + count.hits) /
         (count.confidence_trials + count.trials);
}

void AcceptanceStats::count(int32_t kind, bool right) {
  if (all_texts_) all_texts_->count(kind, right);
  Count& count = counts_.try_emplace(kind, Count{0, 0, confidence_trials_}).first->second;
  count.hits = fading_ * count.hits + (right ? 1 : 0);
  count.trials = fading_ * count.trials + 1;
  count.confidence_trials *= fading_;
}

std::vector<double> ProposalStats::accept_probs(const CandidateTree& tree) const {
  const std::vector<NodeKind> kinds = kinds_of(tree);
  std::vector<double> accept_probs(kinds.size(), 1);
  for (size_t i = 1; i < kinds.size(); ++i)
    accept_probs[i] = accept_probs[static_cast<size_t>(tree.parents[i])] *
                      rates_.rate(kinds[i].kind, kinds[i].confidence);
  return accept_probs;
}

void ProposalStats::remember(const CandidateTree& tree) {
  if (tree.size() == 1) return;
  Remembered& added = remembered_.emplace_back();
  added.tree = tree;
  for (const NodeKind& each : kinds_of(tree)) added.kinds.push_back(each.kind);
}

void ProposalStats::follow(TokenId token) {
  std::erase_if(remembered_, [&](Remembered& each) {
    const int32_t parent = std::exchange(each.node, -1);
    for (int32_t i = parent + 1; i < each.tree.size(); ++i) {
      const auto node = static_cast<size_t>(i);
      if (each.tree.parents[node] != parent) continue;
      const bool right = each.tree.tokens[node] == token;
      if (right) each.node = i;
      rates_.count(each.kinds[node], right);
    }
    return each.node < 0;
  });
}

}  // namespace medusa
