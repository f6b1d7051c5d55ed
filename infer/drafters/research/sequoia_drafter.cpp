#include "infer/drafters/research/sequoia_drafter.h"

#include <algorithm>

#include "infer/draft_models/grow_tree.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/prefix_drafter.h"
#include "infer/factory.h"
#include "infer/infer_config.h"

namespace medusa {
namespace {

/// Counts the siblings of each node that was reached.
void count_siblings(const CandidateTree& tree, const Acceptance& accepted,
                    PositionalAcceptance& acceptance) {
  int32_t node = 0;
  for (size_t depth = 0; depth <= accepted.path.size(); ++depth) {
    const bool stood = depth < accepted.path.size();
    int32_t siblings = 0, right = -1;
    for (int32_t i = node + 1; i < tree.num_verify; ++i) {
      if (tree.parents[static_cast<size_t>(i)] != node) continue;
      if (stood && i == accepted.path[depth]) right = siblings;
      ++siblings;
    }
    if (siblings > 0) acceptance.count(static_cast<int32_t>(depth) + 1, siblings, right);
    if (stood) node = accepted.path[depth];
  }
}

}  // namespace

SequoiaDrafter::SequoiaDrafter(const SequoiaConfig& config,
                               std::shared_ptr<PositionalAcceptance> acceptance,
                               std::unique_ptr<DraftSequence> sequence, const DraftChoice& choice)
    : acceptance_(std::move(acceptance)),
      sequence_(std::move(sequence)),
      choice_(choice),
      shape_(best_shape(*acceptance_, config.nodes, config.depth, kSequoiaMaxChildren)) {}

void SequoiaDrafter::begin(std::span<const TokenId> prompt) { sequence_->begin(prompt); }

CandidateTree SequoiaDrafter::propose(const DraftContext& context, const Random& random) {
  const auto children = [&](const DraftedTree& /*drafted*/, int32_t node) {
    const auto at = static_cast<size_t>(node);
    return at < shape_.children.size() ? shape_.children[at] : 0;
  };
  return grow_tree(*sequence_, choice_, context, random, children).tree;
}

void SequoiaDrafter::observe(const CandidateTree& tree, const TargetOutput& /*output*/,
                             const Acceptance& accepted) {
  sequence_->keep(accepted.path);
  count_siblings(tree, accepted, *acceptance_);
}

SequoiaMedusaDrafter::SequoiaMedusaDrafter(const SequoiaConfig& config,
                                           std::shared_ptr<PositionalAcceptance> acceptance,
                                           HeadsRunner& runner)
    : acceptance_(std::move(acceptance)) {
  const auto most_children =
      static_cast<int32_t>(std::min<int64_t>(runner.top_k(), kSequoiaMaxChildren));
  const auto depth = static_cast<int32_t>(std::min<int64_t>(runner.num_heads(), config.depth));
  const SequoiaShape best = best_shape(*acceptance_, config.nodes, depth, most_children);
  shape_ = make_choice_tree(rank_paths(best), most_children, "sequoia").shape();
  drafter_.emplace(runner, shape_);
}

void SequoiaMedusaDrafter::observe(const CandidateTree& tree, const TargetOutput& /*output*/,
                                   const Acceptance& accepted) {
  count_siblings(tree, accepted, *acceptance_);
}

std::vector<RankPath> rank_paths(const SequoiaShape& shape) {
  std::vector<RankPath> nodes{{}};  // the root's path, then its children's, …
  for (size_t parent = 0; parent < shape.children.size(); ++parent)
    for (int32_t rank = 0; rank < shape.children[parent]; ++rank) {
      RankPath path = nodes[parent];
      path.push_back(rank);
      nodes.push_back(std::move(path));
    }
  nodes.erase(nodes.begin());
  return nodes;
}

const DrafterSpec kSequoiaDrafter{
    .kind = DrafterKind::Sequoia,
    .summary = "a tree of the shape that is best for the acceptance measured so far",
    .level = SupportLevel::Research,
    .needs =
        [](const InferConfig& config) {
          if (config.sequoia.source == SequoiaSource::DraftModel) return DraftNeeds{.draft = true};
          return DraftNeeds{.heads = true, .drafts = kSequoiaMaxChildren};
        },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      const bool medusa = config.sequoia.source == SequoiaSource::Medusa;
      const auto acceptance = std::make_shared<PositionalAcceptance>(/*by_depth=*/medusa);
      if (medusa)
        return [sequoia = config.sequoia, acceptance, runner = parts.runner] {
          return behind_prefix(std::make_unique<SequoiaMedusaDrafter>(sequoia, acceptance, *runner),
                               *runner);
        };
      return [sequoia = config.sequoia, acceptance, model = parts.draft,
              choice = draft_choice(config)] {
        return std::make_unique<SequoiaDrafter>(sequoia, acceptance, model->open(), choice);
      };
    }};

}  // namespace medusa
