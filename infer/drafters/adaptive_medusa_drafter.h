// A choice tree that adapts: in each step the part of it that pays on this text and this machine,
// down to plain decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heads/tree/choice_tree.h"
#include "infer/drafter.h"
#include "infer/drafters/acceptance_stats.h"
#include "infer/drafters/heads_backoff.h"
#include "infer/drafters/tree_pruning.h"
#include "infer/step_cost.h"

namespace medusa {

/// Each node's acceptance probability begins at what calibration counted, or all texts so far have
/// come to, and follows what became of the proposals of this text, also of nodes that were left
/// out. Before a step the nodes are chosen that gain more than their rows and the drafting cost; if
/// none does, the heads are not run (heads_backoff.h): where they run nevertheless, it only judges
/// what they would have drafted.
class AdaptiveMedusaDrafter : public Drafter {
 public:
  /// @param whole      proposes the whole tree, or the first nodes of it near a limit. Not asked in
  ///                   each step, but told of each.
  /// @param shape      of that tree.
  /// @param cost       of rows and of drafting.
  /// @param all_texts  of this tree; null: each text begins with calibration's counts.
  AdaptiveMedusaDrafter(std::unique_ptr<Drafter> whole, const TreeShape& shape,
                        const StepCost& cost, std::shared_ptr<AcceptanceStats> all_texts = nullptr);

  void begin(std::span<const TokenId> prompt) override { whole_->begin(prompt); }
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  std::unique_ptr<Drafter> whole_;
  CandidateTree places_;  // the tree without tokens: what acceptance probabilities are asked of
  std::vector<double> perfect_;  // [N] acceptance probabilities, were the heads always right: 1
                                 // along a longest path
  StepCost cost_;                // of a sequence alone
  ProposalStats record_;
  Throughput throughput_;
  HeadsBackoff backoff_;
  int32_t num_sequences_ = 1;  // that shared the last pass
  bool ran_heads_ = false;     // for it
};

}  // namespace medusa
