#include "infer/drafters/blockwise_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "heads/path_drafts.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/prefix_drafter.h"
#include "infer/infer_config.h"
#include "infer/tree_builder.h"

namespace medusa {

int32_t block_of(const BlockwiseConfig& config, int64_t num_heads) {
  const int64_t block = config.block.value_or(static_cast<int32_t>(num_heads));
  if (block > num_heads)
    throw UserError(
        fmt::format("blockwise: block is {}, expected at most {}, the number of heads; lower it or "
                    "train more heads",
                    block, num_heads));
  return static_cast<int32_t>(block);
}

CandidateTree BlockwiseDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  const int32_t length = std::min({block_, context.max_depth, context.max_nodes - 1});
  TreeBuilder tree(context);
  if (!context.hidden.defined() || length < 1) return std::move(tree).take();
  PathDrafts drafts(runner_, context.hidden, context.tokens.back(), length);
  std::vector<TokenId> path;
  for (int32_t head = 0, node = 0; head < length; ++head) {
    path.push_back(drafts.after(path, head).token(0, 0));
    node = tree.child(node, path.back());
  }
  return std::move(tree).take();
}

const DrafterSpec kBlockwiseDrafter{
    .kind = DrafterKind::Blockwise,
    .summary = "a chain: the top draft of each head",
    .level = SupportLevel::Experimental,
    .is_mergeable = true,
    .needs = [](const InferConfig&) { return DraftNeeds{.heads = true}; },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      HeadsRunner& runner = *parts.runner;
      const int32_t block = block_of(config.blockwise.drafter, runner.num_heads());
      return [&runner, block] {
        return behind_prefix(std::make_unique<BlockwiseDrafter>(runner, block), runner);
      };
    }};

}  // namespace medusa
