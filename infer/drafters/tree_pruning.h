// Which nodes of a proposal pay for their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infer/step_cost.h"

namespace medusa {

/// How fast a text has grown lately: tokens per time of a plain step.
class Throughput {
 public:
  /// At least 1, which plain decoding reaches everywhere.
  double tokens_per_cost() const;
  void count(double tokens, double cost);

 private:
  double tokens_ = 0, cost_ = 0;  // old steps faded
};

/// Over many steps, most tokens per second are had where every step has the most tokens less what
/// its time would bring elsewhere: E(N) - throughput · cost(N) (the ratio of two sums is maximized
/// as a difference; Dinkelbach 1967). E(N) is 1 and the sum of the nodes' acceptance probabilities.
///
/// @param accept_probs  [nodes] that a node is right; the root's first, no child's above its
///                      parent's, which comes before it.
/// @param most          nodes, the root included.
/// @returns             the chosen nodes, ascending: a tree, and at least the root.
std::vector<size_t> prune_tree(std::span<const double> accept_probs, const StepCost& cost,
                               double tokens_per_cost, int32_t most);

/// E(N) - throughput · cost(N) of such nodes, in tokens.
double gain_of(std::span<const size_t> nodes, std::span<const double> accept_probs,
               const StepCost& cost, double tokens_per_cost);

}  // namespace medusa
