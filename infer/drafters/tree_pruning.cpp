#include "infer/drafters/tree_pruning.h"

#include <algorithm>
#include <numeric>

namespace medusa {
namespace {

constexpr double kThroughputFading = 0.98;  // of the throughput from one step to the next
constexpr double kPriorSteps = 8;           // plain steps that stand before the first one

}  // namespace

double Throughput::tokens_per_cost() const {
  return std::max(1.0, (kPriorSteps + tokens_) / (kPriorSteps + cost_));
}

void Throughput::count(double tokens, double cost) {
  tokens_ = kThroughputFading * tokens_ + tokens;
  cost_ = kThroughputFading * cost_ + cost;
}

std::vector<size_t> prune_tree(std::span<const double> accept_probs, const StepCost& cost,
                               double tokens_per_cost, int32_t most) {
  std::vector<size_t> order(accept_probs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Stable: of equal probabilities the parent stays before its child, so each beginning is a tree.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return accept_probs[a] > accept_probs[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(most)));
  double tokens = 0, best = 0;
  size_t best_size = 0;
  for (size_t n = 1; n <= order.size(); ++n) {
    tokens += accept_probs[order[n - 1]];
    const double gain = tokens - tokens_per_cost * cost(static_cast<int32_t>(n));
    if (best_size > 0 && gain <= best) continue;
    best = gain;
    best_size = n;
  }
  order.resize(best_size);
  std::sort(order.begin(), order.end());
  return order;
}

double gain_of(std::span<const size_t> nodes, std::span<const double> accept_probs,
               const StepCost& cost, double tokens_per_cost) {
  double tokens = 0;
  for (const size_t node : nodes) tokens += accept_probs[node];
  return tokens - tokens_per_cost * cost(static_cast<int32_t>(nodes.size()));
}

}  // namespace medusa
