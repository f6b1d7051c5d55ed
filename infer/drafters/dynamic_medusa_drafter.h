// Dynamic trees for Medusa's heads: in each step the nodes that are most probable in it. EAGLE-2's
// re-ranking (arXiv:2406.16858 §4.2), on heads whose probabilities are brought to one scale first.
#pragma once

#include <cstdint>
#include <span>

#include "heads/heads_runner.h"
#include "infer/draft_models/best_paths.h"
#include "infer/drafter.h"

namespace medusa {

class PathDrafts;

/// A path's probability is the product of its drafts' probabilities at their heads' temperatures.
/// The tree is the root and the N - 1 most probable paths among all that the runner's drafts make;
/// of equal ones the shorter comes first, then the one of lower ranks.
///
/// Exact (infer/draft_models/best_paths.h); EAGLE-2 expands a fixed number of nodes per depth
/// instead.
class DynamicMedusaDrafter : public Drafter {
 public:
  /// @param runner, temperatures  kept by reference; must outlive this. Temperatures: [K], or
  ///                              empty: 1.
  /// @param num_nodes             N, at least 1.
  DynamicMedusaDrafter(HeadsRunner& runner, std::span<const double> temperatures, int32_t num_nodes)
      : runner_(runner), temperatures_(temperatures), num_nodes_(num_nodes) {}

  /// Only the root where there is no state yet (a prompt of one token).
  CandidateTree propose(const DraftContext& context, const Random& random) override;

 private:
  bool expand(int32_t depth, PathDrafts& drafts, BestPaths& paths) const;

  HeadsRunner& runner_;
  std::span<const double> temperatures_;
  int32_t num_nodes_;
};

}  // namespace medusa
