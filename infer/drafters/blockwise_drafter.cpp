#include "infer/drafters/blockwise_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
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
  const TokenId root = context.tokens.back();
  const HeadGuesses& guesses = guesser_.guess(context.hidden, {&root, 1}, length);
  int32_t node = 0;
  for (int32_t head = 0; head < length; ++head) node = tree.child(node, guesses.token(0, head, 0));
  return std::move(tree).take();
}

}  // namespace medusa
