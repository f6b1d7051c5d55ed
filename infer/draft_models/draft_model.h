// A cheaper model that runs ahead of the target: what drafters that decode by themselves stand on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "infer/drafter.h"

namespace medusa {

/// The draft model's rows of one sequence. A step is: extend() from the root on, as often as the
/// tree grows, then keep().
///
/// Thread safety: none.
class DraftSequence {
 public:
  virtual ~DraftSequence() = default;

  /// Rows of one sequence that it can hold, tentative ones included.
  virtual int64_t max_rows() const = 0;

  /// Runs a prompt's tokens but the last, so that the first step need not.
  virtual void begin(std::span<const TokenId> prompt) = 0;

  /// Runs nodes [first, N) of a tree that grows; the nodes before ran in earlier calls of this
  /// step. first 0 is the root, behind all other tokens of the context.
  /// @returns  [N - first, V] float32 on the CPU: predictions after these nodes. Valid until the
  ///           next call on any sequence of the model.
  virtual at::Tensor extend(const DraftContext& context, const CandidateTree& tree,
                            int32_t first) = 0;

  /// Ends the step: the root and these nodes (ascending) have become text. Nodes that did not run
  /// may be among them.
  virtual void keep(std::span<const int32_t> path) = 0;
};

class DraftModel {
 public:
  virtual ~DraftModel() = default;
  virtual std::unique_ptr<DraftSequence> open() = 0;
};

}  // namespace medusa
