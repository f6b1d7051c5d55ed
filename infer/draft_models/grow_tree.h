// A draft model's tree, grown level by level: the nodes of a level run together in one pass.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "infer/draft_models/draft_choice.h"
#include "infer/draft_models/draft_model.h"

namespace medusa {

/// A tree that a draft model proposes.
struct DraftedTree {
  CandidateTree tree;                 // draft_probs is there if tokens were drawn
  std::vector<double> probabilities;  // [N] of each token under the draft model; 1 for the root
  std::vector<int32_t> depths;        // [N]
};

/// How many children a node of the tree so far gets. Asked level by level.
using ChildCount = std::function<int32_t(const DraftedTree& drafted, int32_t node)>;

/// Grows the tree until no node of a level gets children or a limit of the step is reached; nodes
/// come level by level. Without room in the draft model's cache it is the root alone.
DraftedTree grow_tree(DraftSequence& sequence, const DraftChoice& choice,
                      const DraftContext& context, const Random& random,
                      const ChildCount& children);

/// One parent's draws: rows of V float32 -> draft_probs [N, V] with a row of zeros for the root.
at::Tensor draft_probs_tensor(const std::vector<float>& rows, int64_t vocab_size);

}  // namespace medusa
