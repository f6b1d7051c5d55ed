#include "infer/drafters/merge_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "infer/tree_builder.h"

namespace medusa {
namespace {

constexpr double kFading = 0.99;     // of a count from one step to the next
constexpr double kPriorTrials = 16;  // steps that the belief before the first one weighs

/// Belief about a token before anything was counted: the first sibling is right half the time.
double prior_rate(int32_t sibling) { return 0.5 / ((1 + sibling) * (1 + sibling)); }

}  // namespace

bool can_be_merged(DrafterKind kind) {
  return kind == DrafterKind::Medusa || kind == DrafterKind::Blockwise ||
         kind == DrafterKind::PromptLookup;
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

double HitRates::rate(int32_t depth, int32_t sibling) const {
  const auto found = counts_.find({depth, sibling});
  return found == counts_.end() ? prior_rate(sibling) : found->second.hits / found->second.trials;
}

void HitRates::count(int32_t depth, int32_t sibling, bool right) {
  const Count belief{kPriorTrials * prior_rate(sibling), kPriorTrials};
  Count& count = counts_.try_emplace({depth, sibling}, belief).first->second;
  count.hits = kFading * count.hits + (right ? 1 : 0);
  count.trials = kFading * count.trials + 1;
}

MergeDrafter::MergeDrafter(const MergeConfig& config,
                           std::vector<std::unique_ptr<Drafter>> drafters)
    : config_(config) {
  for (auto& drafter : drafters) members_.push_back({std::move(drafter), {}, {}, {}, {}});
}

void MergeDrafter::begin(std::span<const TokenId> prompt) {
  for (Member& member : members_) member.drafter->begin(prompt);
}

/// Fills in depths and siblings of the member's tree.
void MergeDrafter::describe(Member& member) {
  const auto n = static_cast<size_t>(member.tree.size());
  member.depths.assign(n, 0);
  member.siblings.assign(n, 0);
  std::vector<int32_t> children(n, 0);
  for (size_t i = 1; i < n; ++i) {
    const auto parent = static_cast<size_t>(member.tree.parents[i]);
    member.depths[i] = member.depths[parent] + 1;
    member.siblings[i] = children[parent]++;
  }
}

CandidateTree MergeDrafter::propose(const DraftContext& context, const Random& random) {
  // Everything that anyone proposes, duplicates folded, and how probable it is.
  DraftContext all = context;
  all.max_nodes = 1 + static_cast<int32_t>(members_.size()) * context.max_nodes;
  TreeBuilder folded(all);
  std::vector<double> chances{1};
  for (Member& member : members_) {
    member.tree = member.drafter->propose(context, random);
    MEDUSA_ASSERT(member.tree.num_verify == member.tree.size() &&
                  !member.tree.draft_probs.defined());
    describe(member);
    std::vector<int32_t> nodes{0};  // where the member's nodes are in the folded tree
    std::vector<double> own{1};
    for (size_t i = 1; i < member.depths.size(); ++i) {
      const auto parent = static_cast<size_t>(member.tree.parents[i]);
      nodes.push_back(folded.child(nodes[parent], member.tree.tokens[i]));
      MEDUSA_ASSERT(nodes.back() > 0, i);  // else the member does not keep to depth or nodes
      own.push_back(own[parent] * member.rates.rate(member.depths[i], member.siblings[i]));
      chances.resize(static_cast<size_t>(folded.size()), 0);
      double& chance = chances[static_cast<size_t>(nodes.back())];
      chance = std::max(chance, own.back());
    }
  }

  // A node is at most as probable as its parent and comes after it, so the best ones are a tree.
  std::vector<size_t> order(chances.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return chances[a] > chances[b]; });
  const auto most = static_cast<size_t>(std::min(config_.budget, context.max_nodes));
  if (order.size() > most) order.resize(most);
  while (order.size() > 1 && chances[order.back()] < config_.min_gain) order.pop_back();
  std::sort(order.begin(), order.end());

  const CandidateTree everything = std::move(folded).take();
  TreeBuilder best(context);
  std::vector<int32_t> places(chances.size(), 0);
  for (const size_t node : order)
    if (node > 0)
      places[node] = best.child(places[static_cast<size_t>(everything.parents[node])],
                                everything.tokens[node]);
  return std::move(best).take();
}

void MergeDrafter::observe(const CandidateTree& tree, const TargetOutput& /*output*/,
                           const Acceptance& accepted) {
  std::vector<TokenId> emitted;
  for (const int32_t node : accepted.path)
    emitted.push_back(tree.tokens[static_cast<size_t>(node)]);
  emitted.push_back(accepted.next);
  for (Member& member : members_) {
    std::vector<bool> right(member.depths.size(), false);
    right[0] = true;
    for (size_t i = 1; i < right.size(); ++i) {
      const auto depth = static_cast<size_t>(member.depths[i]);
      if (!right[static_cast<size_t>(member.tree.parents[i])] || depth > emitted.size()) continue;
      right[i] = member.tree.tokens[i] == emitted[depth - 1];
      member.rates.count(member.depths[i], member.siblings[i], right[i]);
    }
  }
}

}  // namespace medusa
