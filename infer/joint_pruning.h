// Which nodes of several sequences' trees pay for their rows in the pass that all of them share.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "infer/candidate_tree.h"
#include "infer/drafters/tree_pruning.h"
#include "infer/step_cost.h"

namespace medusa {

/// Rows of a pass go to whoever gains most by them, whichever sequence that is: a hard text gives
/// its rows to an easy one, and a tile that is partly empty is filled. A step's gain is the tokens
/// that all nodes together may bring less what the pass would bring elsewhere in the same time
/// (tree_pruning.h says it for one tree).
///
/// Thread safety: none.
class JointPruning {
 public:
  /// @param cost  of a pass by its rows; empty: rows cost nothing, and no tree is pruned.
  explicit JointPruning(StepCost cost) : cost_(std::move(cost)) {}

  const StepCost& cost() const { return cost_; }

  /// Says whether trees that carry CandidateTree::accept_probs will be pruned.
  bool is_on() const { return !cost_.relative.empty(); }

  /// Takes the nodes that do not pay out of the trees that carry accept_probs; other trees stay.
  /// @param trees       of one pass, with their roots.
  /// @param other_rows  that run in the same pass.
  void prune(std::span<CandidateTree* const> trees, int32_t other_rows) const;

  /// Takes what a pass over so many sequences came to: its rows, without those of prompts, and the
  /// tokens that it emitted.
  void count(int32_t num_sequences, int32_t rows, int64_t tokens);

 private:
  /// Costs of rows are given in tokens of plain decoding: so many sequences have this for one.
  double tokens_per_plain_pass(int32_t num_sequences) const {
    return num_sequences / cost_(num_sequences);
  }

  StepCost cost_;
  Throughput throughput_;
};

}  // namespace medusa
