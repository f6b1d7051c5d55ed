#include "infer/drafters/retrieval_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/match_confidence.h"
#include "infer/drafters/merge_drafter.h"
#include "infer/infer_config.h"
#include "infer/tree_builder.h"

namespace medusa {
namespace {

/// A node of the trie that is not in the tree yet.
struct TrieBranch {
  int32_t parent = 0;  // node of the tree
  int32_t order = 0;   // when it was found
  TextStore::Next next;
  double confidence = 0;
};

/// Puts the heaviest branch on top of the heap; of equal ones the one that was found first, which
/// is also the nearer to the root.
struct Lighter {
  bool operator()(const TrieBranch& a, const TrieBranch& b) const {
    const int64_t x = a.next.places.count(), y = b.next.places.count();
    return x != y ? x < y : a.order > b.order;
  }
};

}  // namespace

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
  TreeBuilder tree(context);
  std::priority_queue<TrieBranch, std::vector<TrieBranch>, Lighter> open;
  int32_t found = 0;
  const auto open_children = [&](int32_t node, const TextStore::Places& places) {
    const std::vector<TextStore::Next> all = store_.continuations(places);
    for (const TextStore::Next& next : all)
      open.push({node, found++, next,
                 match_confidence({places.length, next.places.count(), places.count(),
                                   static_cast<int64_t>(all.size())},
                                  kTrustInOtherTexts)});
  };
  open_children(0, longest_match(context.tokens));
  while (!open.empty() && !tree.full() && tree.size() < config_.nodes) {
    const TrieBranch branch = open.top();
    open.pop();
    const int32_t node = tree.child(branch.parent, branch.next.token);
    if (node < 0) continue;  // too deep
    tree.set_confidence(node, branch.confidence);
    open_children(node, branch.next.places);
  }
  return std::move(tree).take();
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
