// What the decoder needs of the backbone: several sequences, each with committed and tentative
// rows.
#pragma once

#include <span>
#include <vector>

#include "infer/candidate_tree.h"

namespace medusa {

/// The target's answer for one tree. Views: valid until the next forward().
struct TargetOutput {
  at::Tensor logits;  // [N, V] float32 on the CPU, row i: the prediction after node i
  at::Tensor hidden;  // [N, H] state at node i, after the final norm, before the LM head; in the
                      // target's dtype, on its device
};

/// One sequence's part of a pass.
struct SlotTree {
  int32_t slot = 0;
  const CandidateTree* tree = nullptr;
};

/// Rows appended by forward() are tentative until commit(). The root of a tree is never in the
/// cache before forward().
///
/// Thread safety: none.
class TargetModel {
 public:
  virtual ~TargetModel() = default;

  virtual int32_t num_free_slots() const = 0;
  virtual int32_t open() = 0;            // takes a slot for a new sequence
  virtual void close(int32_t slot) = 0;  // gives it back, with its rows
  virtual int64_t max_rows() const = 0;  // of one slot, committed and tentative together

  /// Runs and commits rows for the tokens. @returns [H], a copy of the last token's state.
  virtual at::Tensor prefill(int32_t slot, std::span<const TokenId> tokens) = 0;

  /// Runs all trees as one pass; drops tentative rows left by a failed step.
  virtual std::vector<TargetOutput> forward(std::span<const SlotTree> trees) = 0;

  /// Keeps these rows of the slot's last tree (node indices, ascending), drops its others.
  virtual void commit(int32_t slot, std::span<const int32_t> nodes) = 0;
};

}  // namespace medusa
