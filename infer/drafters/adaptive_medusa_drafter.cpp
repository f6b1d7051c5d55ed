#include "infer/drafters/adaptive_medusa_drafter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace medusa {
namespace {

// Few, so that a text on which drafts fail costs little: a dozen misses in a row make it plain.
constexpr double kConfidenceTrials = 4;

/// [N] how often a node was right when its parent was. Where nobody counted: one in two, the
/// fewer the later it stands among its siblings.
std::vector<double> rates_of(const TreeShape& shape) {
  std::vector<double> rates(shape.parents.size(), 1);
  for (size_t i = 1; i < rates.size(); ++i) {
    const double place = 1.0 + shape.ranks[i];
    rates[i] = 0.5 / (place * place);
    if (shape.accept_probs.empty()) continue;
    const double parent = shape.accept_probs[static_cast<size_t>(shape.parents[i])];
    rates[i] = parent > 0 ? shape.accept_probs[i] / parent : 0;
  }
  return rates;
}

/// [N] 1 for the nodes of a longest path, 0 for others.
std::vector<double> longest_path(const TreeShape& shape) {
  std::vector<double> path(shape.parents.size(), 0);
  auto node = static_cast<int32_t>(std::max_element(shape.depths.begin(), shape.depths.end()) -
                                   shape.depths.begin());
  for (; node >= 0; node = shape.parents[static_cast<size_t>(node)])
    path[static_cast<size_t>(node)] = 1;
  return path;
}

/// Of a whole step: drafting is part of each but the plain one.
StepCost with_drafting(StepCost cost) {
  for (size_t i = 1; i < cost.relative.size(); ++i) cost.relative[i] += cost.drafting.value_or(0);
  return cost;
}

}  // namespace

AdaptiveMedusaDrafter::AdaptiveMedusaDrafter(std::unique_ptr<Drafter> whole, const TreeShape& shape,
                                             const StepCost& cost,
                                             std::shared_ptr<AcceptanceStats> all_texts)
    : whole_(std::move(whole)),
      perfect_(longest_path(shape)),
      cost_(cost),
      record_(rates_of(shape), kConfidenceTrials, std::move(all_texts)) {
  places_.tokens.resize(shape.parents.size());
  places_.parents = shape.parents;
}

CandidateTree AdaptiveMedusaDrafter::propose(const DraftContext& context, const Random& random) {
  const TokenId root = context.tokens.back();
  num_sequences_ = context.num_sequences;
  ran_heads_ = false;
  if (!context.hidden.defined()) return root_only(root);
  const std::vector<double> accept_probs = record_.accept_probs(places_);
  const StepCost cost = with_drafting(cost_.for_batch(context.num_sequences));
  std::vector<size_t> nodes =
      prune_tree(accept_probs, cost, throughput_.tokens_per_cost(), context.max_nodes);
  const bool pay = nodes.size() > 1;
  if (!pay && prune_tree(perfect_, cost, 1, context.max_nodes).size() < 2) return root_only(root);
  if (!backoff_.should_run(pay, cost.drafting.value_or(0))) return root_only(root);

  CandidateTree all = whole_->propose(context, random);
  record_.remember(all);
  ran_heads_ = true;
  if (pay && context.pruned_jointly) {
    all.accept_probs.assign(accept_probs.begin(),
                            accept_probs.begin() + static_cast<std::ptrdiff_t>(all.tokens.size()));
    return all;
  }
  std::erase_if(nodes, [&](size_t node) { return node >= all.tokens.size(); });  // near a limit
  if (nodes.size() < 2) return root_only(root);
  return part_of(all, nodes);
}

void AdaptiveMedusaDrafter::observe(const CandidateTree& tree, const TargetOutput& output,
                                    const Acceptance& accepted) {
  whole_->observe(tree, output, accepted);
  const std::vector<TokenId> emitted = emitted_tokens(tree, accepted.path, accepted.next);
  for (const TokenId token : emitted) record_.follow(token);
  const StepCost cost = cost_.for_batch(num_sequences_);
  throughput_.count(static_cast<double>(emitted.size()),
                    cost(tree.size()) + (ran_heads_ ? cost.drafting.value_or(0) : 0));
}

}  // namespace medusa
