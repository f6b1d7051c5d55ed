#include "infer/drafters/research/jacobi_drafter.h"

#include "infer/drafter_spec.h"
#include "infer/drafters/research/random_token.h"
#include "infer/infer_config.h"
#include "infer/logits/target_logits.h"
#include "infer/sampling.h"
#include "infer/tree_builder.h"

namespace medusa {

CandidateTree JacobiDrafter::propose(const DraftContext& context, const Random& random) {
  while (drafts_.size() < static_cast<size_t>(config_.block))
    drafts_.push_back(random_token(context.tokens, random, drafts_.size()));
  TreeBuilder tree(context);
  tree.add_path(drafts_);
  return std::move(tree).take();
}

void JacobiDrafter::observe(const CandidateTree& tree, const TargetOutput& output,
                            const Acceptance& accepted) {
  // Row i holds the target's answer to the place after node i. The one after the last accepted node
  // is the next root; the rows behind it saw drafts that are wrong now, but seldom all of them.
  drafts_.clear();
  const TargetLogits logits(output.logits);
  for (auto node = static_cast<int32_t>(accepted.path.size()) + 1; node < tree.size(); ++node)
    drafts_.push_back(argmax(logits.row(node)));
}

const DrafterSpec kJacobiDrafter{
    .kind = DrafterKind::Jacobi,
    .summary = "a chain: the target's answers to the chain before it",
    .level = SupportLevel::Research,
    .make = [](const InferConfig& config, const DraftParts&) -> DrafterFactory {
      return [own = config.jacobi] { return std::make_unique<JacobiDrafter>(own); };
    }};

}  // namespace medusa
