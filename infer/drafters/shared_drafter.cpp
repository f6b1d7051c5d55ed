#include "infer/drafters/shared_drafter.h"

#include "infer/drafter_spec.h"
#include "infer/drafters/merge_drafter.h"
#include "infer/infer_config.h"

namespace medusa {

CandidateTree SharedDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  proposed_ = looked_up_tree(texts_, texts_.longest_match(context.tokens, config_.max_match),
                             context, config_.nodes);
  return proposed_.tree;
}

/// The step's tree may be that of several drafters, without some of ours.
void SharedDrafter::observe(const CandidateTree& tree, const TargetOutput& /*output*/,
                            const Acceptance& accepted) {
  int32_t node = 0;
  for (const TokenId token : emitted_tokens(tree, accepted.path, accepted.next)) {
    const int32_t child = find_child(proposed_.tree, node, token);
    if (child < 0) break;
    node = child;
  }
  if (node > 0) texts_.count_use(proposed_.places[static_cast<size_t>(node)]);
  proposed_ = {};
}

const DrafterSpec kSharedDrafter{
    .kind = DrafterKind::Shared,
    .summary = "what followed the last tokens in answers that the server has finished",
    .level = SupportLevel::Experimental,
    .is_mergeable = true,
    .needs = [](const InferConfig&) { return DraftNeeds{.cost = true, .shared = true}; },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      return [own = config.shared, texts = parts.shared] {
        return std::make_unique<SharedDrafter>(*texts, own);
      };
    },
    .weigh = weigh_lookups};

}  // namespace medusa
