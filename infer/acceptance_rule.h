// Acceptance rules decide which candidates stand.
#pragma once

#include <vector>

#include "base/random.h"
#include "infer/candidate_tree.h"

namespace medusa {

struct Acceptance {
  std::vector<int32_t> path;  // accepted nodes below the root, top down; may be empty
  TokenId next = 0;           // token the target adds after the last accepted node: the next root
};

/// Pure: the same arguments give the same answer, and calls may run at the same time.
class AcceptanceRule {
 public:
  virtual ~AcceptanceRule() = default;

  /// @param logits         [N, V] float32 on the CPU, row i: the target's prediction after node i.
  /// @param root_position  absolute position of the root; node i sits at root_position + depth(i).
  virtual Acceptance accept(const CandidateTree& tree, const at::Tensor& logits,
                            int64_t root_position, const Random& random) const = 0;

  /// True when the text (greedy, match) or its distribution (rejection) is the target's own.
  virtual bool lossless() const = 0;
};

}  // namespace medusa
