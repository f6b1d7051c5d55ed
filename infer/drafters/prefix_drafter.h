// Any drafter that runs heads, behind the layer that these heads read: the context's state is
// replaced by what the layer makes of the answer so far.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "heads/prefix_model.h"
#include "infer/drafter.h"

namespace medusa {

class HeadsRunner;

/// The layer's positions are those of the text from the prompt's last token on, as in training. It
/// runs when somebody drafts, over all positions that were committed since it ran last: one to
/// K + 1, more after steps in which nobody ran them.
class PrefixDrafter : public Drafter {
 public:
  /// @param inner  sees the layer's states instead of the target's.
  /// @param model  kept by reference; must outlive this.
  PrefixDrafter(std::unique_ptr<Drafter> inner, PrefixModel& model)
      : inner_(std::move(inner)), text_(model) {}

  void begin(std::span<const TokenId> prompt) override { inner_->begin(prompt); }
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  at::Tensor state(const DraftContext& context);

  std::unique_ptr<Drafter> inner_;
  PrefixText text_;
  std::vector<at::Tensor> states_;  // of [n, H]: of positions that have not run
  std::vector<TokenId> roots_;      // behind each of them
  at::Tensor last_;                 // [H] of the last position; undefined before the first
};

/// The drafter, behind the runner's prefix layer if it has one.
std::unique_ptr<Drafter> behind_prefix(std::unique_ptr<Drafter> drafter, const HeadsRunner& runner);

}  // namespace medusa
