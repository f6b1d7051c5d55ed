#include "infer/drafters/retrieval_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/looked_up_tree.h"
#include "infer/drafters/merge_drafter.h"
#include "infer/infer_config.h"

namespace medusa {
void RetrievalConfig::validate() const {
  if (min_match > max_match)
    throw UserError(
        fmt::format("retrieval: min_match is {}, expected at most max_match, {}; lower it or raise "
                    "max_match",
                    min_match, max_match));
}

TextStore::Places RetrievalDrafter::longest_match(std::span<const TokenId> tokens) const {
  // Where a run occurs, its suffixes do: the lengths that match are all those up to the longest.
  TextStore::Places best;
  auto low = static_cast<size_t>(config_.min_match);
  size_t high = std::min(static_cast<size_t>(config_.max_match), tokens.size());
  while (low <= high) {
    const size_t length = low + (high - low) / 2;
    const TextStore::Places found = store_.find(tokens.last(length));
    if (found.count() > 0) {
      best = found;
      low = length + 1;
    } else {
      high = length - 1;
    }
  }
  return best;
}

CandidateTree RetrievalDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  return looked_up_tree(store_, longest_match(context.tokens), context, config_.nodes).tree;
}

const DrafterSpec kRetrievalDrafter{
    .kind = DrafterKind::Retrieval,
    .summary = "what followed the last tokens in a store of other texts",
    .level = SupportLevel::Experimental,
    .is_mergeable = true,
    .needs = [](const InferConfig&) { return DraftNeeds{.store = true, .cost = true}; },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      return [own = config.retrieval, store = parts.store] {
        return std::make_unique<RetrievalDrafter>(*store, own);
      };
    },
    .weigh = weigh_lookups};

}  // namespace medusa
