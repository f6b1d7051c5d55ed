#include "infer/drafters/merge_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "infer/tree_builder.h"

namespace medusa {

bool can_be_merged(DrafterKind kind) {
  return kind == DrafterKind::Medusa || kind == DrafterKind::Blockwise ||
         kind == DrafterKind::PromptLookup || kind == DrafterKind::Retrieval;
}

void MergeConfig::validate() const {
  if (drafters.size() < 2)
    throw UserError(fmt::format(
        "merge: drafters names {}, expected at least two; add one or choose it as the drafter",
        drafters.size()));
  for (size_t i = 0; i < drafters.size(); ++i)
    if (std::find(drafters.begin(), drafters.begin() + static_cast<std::ptrdiff_t>(i),
                  drafters[i]) != drafters.begin() + static_cast<std::ptrdiff_t>(i))
      throw UserError(fmt::format(
          "merge: drafters names '{}' twice, expected different ones; remove one of the two",
          enum_name(drafters[i])));
}

MergeDrafter::MergeDrafter(std::vector<std::unique_ptr<Drafter>> drafters, int32_t budget,
                           StepCost cost)
    : budget_(budget), cost_(std::move(cost)) {
  MEDUSA_ASSERT(!drafters.empty());
  for (auto& drafter : drafters) members_.push_back({std::move(drafter), {}});
}

void MergeDrafter::begin(std::span<const TokenId> prompt) {
  for (Member& member : members_) member.drafter->begin(prompt);
}

MergeDrafter::Folded MergeDrafter::fold(const DraftContext& context, const Random& random) {
  DraftContext all = context;
  all.max_nodes = 1 + static_cast<int32_t>(members_.size()) * context.max_nodes;
  TreeBuilder folded(all);
  std::vector<double> chances{1};
  for (Member& member : members_) {
    const CandidateTree tree = member.drafter->propose(context, random);
    MEDUSA_ASSERT(tree.num_verify == tree.size() && !tree.draft_probs.defined());
    MEDUSA_ASSERT(tree.beliefs.empty() || tree.beliefs.size() == tree.tokens.size());
    const std::vector<double> own = member.record.chances(tree);
    member.record.remember(tree);
    std::vector<int32_t> nodes{0};  // where the member's nodes are in the folded tree
    for (size_t i = 1; i < own.size(); ++i) {
      nodes.push_back(folded.child(nodes[static_cast<size_t>(tree.parents[i])], tree.tokens[i]));
      MEDUSA_ASSERT(nodes.back() > 0, i);  // else the member does not keep to depth or nodes
      chances.resize(static_cast<size_t>(folded.size()), 0);
      double& chance = chances[static_cast<size_t>(nodes.back())];
      chance = std::max(chance, own[i]);
    }
  }
  return {std::move(folded).take(), std::move(chances)};
}

CandidateTree MergeDrafter::propose(const DraftContext& context, const Random& random) {
  const Folded all = fold(context, random);
  TreeBuilder chosen(context);
  std::vector<int32_t> places(all.chances.size(), 0);
  const int32_t most = std::min(budget_, context.max_nodes);
  cost_now_ = cost_.together(context.num_sequences);
  for (const size_t node : worthwhile_nodes(all.chances, cost_now_, pace_.tokens_per_cost(), most))
    if (node > 0)
      places[node] =
          chosen.child(places[static_cast<size_t>(all.tree.parents[node])], all.tree.tokens[node]);
  return std::move(chosen).take();
}

void MergeDrafter::observe(const CandidateTree& tree, const TargetOutput& output,
                           const Acceptance& accepted) {
  const std::vector<TokenId> emitted = emitted_tokens(tree, accepted.path, accepted.next);
  for (Member& member : members_) {
    member.drafter->observe(tree, output, accepted);
    for (const TokenId token : emitted) member.record.follow(token);
  }
  pace_.count(static_cast<double>(emitted.size()), cost_now_(tree.size()));
}

}  // namespace medusa
