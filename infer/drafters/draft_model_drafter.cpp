#include "infer/drafters/draft_model_drafter.h"

#include "infer/grow_tree.h"

namespace medusa {

void DraftModelDrafter::begin(std::span<const TokenId> prompt) { sequence_->begin(prompt); }

CandidateTree DraftModelDrafter::propose(const DraftContext& context, const Random& random) {
  const auto children = [&](const DraftedTree& drafted, int32_t node) {
    if (drafted.depths[static_cast<size_t>(node)] >= schedule_->length()) return 0;
    return node == 0 || schedule_->goes_on(drafted.probabilities.back()) ? 1 : 0;
  };
  DraftedTree drafted = grow_tree(*sequence_, choice_, context, random, children);
  probabilities_.assign(drafted.probabilities.begin() + 1, drafted.probabilities.end());
  return std::move(drafted.tree);
}

void DraftModelDrafter::observe(const CandidateTree& /*tree*/, const TargetOutput& /*output*/,
                                const Acceptance& accepted) {
  schedule_->observe(probabilities_, accepted.path.size());
  sequence_->keep(accepted.path);
}

}  // namespace medusa
