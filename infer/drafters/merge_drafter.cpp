#include "infer/drafters/merge_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "infer/drafter_spec.h"
#include "infer/infer_config.h"
#include "infer/tree_builder.h"

namespace medusa {

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

MergeDrafter::MergeDrafter(std::vector<Proposer> proposers, int32_t budget, StepCost cost,
                           std::shared_ptr<FadingMean> all_texts)
    : budget_(budget), cost_(std::move(cost)), heads_gain_of_all_(std::move(all_texts)) {
  MEDUSA_ASSERT(!proposers.empty());
  for (Proposer& each : proposers) {
    num_runners_ += each.runs_heads ? 1 : 0;
    ProposalStats record(each.all_texts);
    members_.push_back({std::move(each), std::move(record)});
  }
}

std::span<const int32_t> MergeDrafter::feature_layers() const {
  const Drafter* reader = feature_reader(members_, drafter_of);
  return reader != nullptr ? reader->feature_layers() : std::span<const int32_t>{};
}

void MergeDrafter::read_prompt(const at::Tensor& features) {
  feature_reader(members_, drafter_of)->read_prompt(features);
}

void MergeDrafter::begin(std::span<const TokenId> prompt) {
  for (Member& member : members_) member.proposer.drafter->begin(prompt);
}

MergeDrafter::Folded MergeDrafter::fold(const DraftContext& context, const Random& random,
                                        bool run_heads) {
  DraftContext all = context;
  all.max_nodes = 1 + static_cast<int32_t>(members_.size()) * context.max_nodes;
  TreeBuilder folded(all);
  std::vector<double> accept_probs{1}, without_heads{1};
  std::vector<DrafterKind> drafters{DrafterKind::None};
  for (Member& member : members_) {
    if (member.proposer.runs_heads && !run_heads) continue;
    const CandidateTree tree = member.proposer.drafter->propose(context, random);
    MEDUSA_ASSERT(tree.num_verify == tree.size() && !tree.draft_probs.defined());
    MEDUSA_ASSERT(tree.confidences.empty() || tree.confidences.size() == tree.tokens.size());
    const std::vector<double> own = member.record.accept_probs(tree);
    member.record.remember(tree);
    std::vector<int32_t> nodes{0};  // where the member's nodes are in the folded tree
    for (size_t i = 1; i < own.size(); ++i) {
      nodes.push_back(folded.child(nodes[static_cast<size_t>(tree.parents[i])], tree.tokens[i]));
      MEDUSA_ASSERT(nodes.back() > 0, i);  // else the member does not keep to depth or nodes
      const auto node = static_cast<size_t>(nodes.back());
      for (std::vector<double>* list : {&accept_probs, &without_heads})
        list->resize(static_cast<size_t>(folded.size()), 0);
      drafters.resize(accept_probs.size(), member.proposer.kind);
      if (own[i] > accept_probs[node]) {
        accept_probs[node] = own[i];
        drafters[node] = member.proposer.kind;
      }
      if (!member.proposer.runs_heads) without_heads[node] = std::max(without_heads[node], own[i]);
    }
  }
  CandidateTree tree = std::move(folded).take();
  if (members_.size() > 1) tree.drafters = std::move(drafters);
  return {std::move(tree), std::move(accept_probs), std::move(without_heads)};
}

bool MergeDrafter::heads_pay(double heads_cost) const {
  const bool tried = heads_gain_.count() >= kTrialRuns;
  const FadingMean& known = tried || !heads_gain_of_all_ ? heads_gain_ : *heads_gain_of_all_;
  return known.count() < kTrialRuns || known.mean() > heads_cost * throughput_.tokens_per_cost();
}

CandidateTree MergeDrafter::propose(const DraftContext& context, const Random& random) {
  const StepCost cost = cost_.for_batch(context.num_sequences);
  const double heads_cost = num_runners_ * cost.drafting.value_or(0),
               throughput = throughput_.tokens_per_cost();
  const bool run_heads = heads_cost == 0 || backoff_.should_run(heads_pay(heads_cost), heads_cost);
  Folded all = fold(context, random, run_heads);
  const int32_t most = std::min(budget_, context.max_nodes);
  if (run_heads && heads_cost > 0) {
    const auto best_gain = [&](const std::vector<double>& probs) {
      return gain_of(prune_tree(probs, cost, throughput, most), probs, cost, throughput);
    };
    const double gain = best_gain(all.accept_probs) - best_gain(all.without_heads);
    heads_gain_.add(gain);
    if (heads_gain_of_all_) heads_gain_of_all_->add(gain);
  }
  num_sequences_ = context.num_sequences;
  drafting_cost_ = run_heads ? heads_cost : 0;
  if (context.pruned_jointly) all.tree.accept_probs = all.accept_probs;
  return part_of(all.tree, prune_tree(all.accept_probs, context.pruned_jointly ? StepCost{} : cost,
                                      throughput, most));
}

void MergeDrafter::observe(const CandidateTree& tree, const TargetOutput& output,
                           const Acceptance& accepted) {
  const std::vector<TokenId> emitted = emitted_tokens(tree, accepted.path, accepted.next);
  for (Member& member : members_) {
    member.proposer.drafter->observe(tree, output, accepted);
    for (const TokenId token : emitted) member.record.follow(token);
  }
  throughput_.count(static_cast<double>(emitted.size()),
                    cost_.for_batch(num_sequences_)(tree.size()) + drafting_cost_);
}

DrafterFactory weigh_lookups(const InferConfig& config, const DraftParts& parts,
                             DrafterFactory made) {
  static constexpr int32_t kMostNodes = 64;
  return [kind = config.drafter, made, cost = step_cost(parts), rates = rates_of_all_texts()] {
    std::vector<Proposer> alone;
    alone.push_back({kind, made(), /*runs_heads=*/false, rates});
    return std::make_unique<MergeDrafter>(std::move(alone), kMostNodes, cost);
  };
}

const DrafterSpec kMergeDrafter{
    .kind = DrafterKind::Merge,
    .summary = "of several drafters' trees the nodes that are worth their rows",
    .level = SupportLevel::Supported,
    .needs =
        [](const InferConfig& config) {
          DraftNeeds needs = needs_inside(config, config.merge.drafters);
          needs.cost = true;
          return needs;
        },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      std::vector<bool> run_heads;
      std::vector<std::shared_ptr<AcceptanceStats>> rates;
      for (const DrafterKind kind : config.merge.drafters) {
        run_heads.push_back(needs_inside(config, std::span(&kind, 1)).heads);
        rates.push_back(rates_of_all_texts());
      }
      return
          [budget = config.merge.budget, make = make_inside(config, parts, config.merge.drafters),
           kinds = config.merge.drafters, run_heads, rates, cost = step_cost(parts),
           heads_gain = heads_gain_of_all_texts()] {
            std::vector<Proposer> proposers;
            for (size_t i = 0; i < make.size(); ++i)
              proposers.push_back({kinds[i], make[i](), run_heads[i], rates[i]});
            return std::make_unique<MergeDrafter>(std::move(proposers), budget, cost, heads_gain);
          };
    }};

}  // namespace medusa
