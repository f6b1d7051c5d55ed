#include "infer/drafters/research/specinfer_drafter.h"

#include <ATen/ATen.h>

#include "infer/draft_models/grow_tree.h"
#include "infer/drafter_spec.h"
#include "infer/factory.h"
#include "infer/infer_config.h"
#include "infer/tree_builder.h"

namespace medusa {
namespace {

/// Adds a tree of chosen tokens to what is there; nodes in common stay as they are.
void fold_in(const CandidateTree& from, TreeBuilder& into) {
  std::vector<int32_t> places{0};
  for (size_t i = 1; i < from.tokens.size(); ++i) {
    const int32_t parent = places[static_cast<size_t>(from.parents[i])];
    places.push_back(parent < 0 ? -1 : into.child(parent, from.tokens[i]));
  }
}

/// Rows for nodes that were chosen outright: all probability at their token.
at::Tensor with_point_masses(const at::Tensor& drawn, const std::vector<TokenId>& tokens) {
  const int64_t before = drawn.size(0), after = static_cast<int64_t>(tokens.size());
  at::Tensor out = at::zeros({after, drawn.size(1)}, at::kFloat);
  out.narrow(0, 0, before).copy_(drawn);
  auto* rows = static_cast<float*>(out.data_ptr());
  for (int64_t i = before; i < after; ++i)
    rows[i * drawn.size(1) + tokens[static_cast<size_t>(i)]] = 1;
  return out;
}

}  // namespace

std::span<const int32_t> SpecinferDrafter::feature_layers() const {
  const Drafter* reader = feature_reader(others_, [](const auto& other) { return other.get(); });
  return reader != nullptr ? reader->feature_layers() : std::span<const int32_t>{};
}

void SpecinferDrafter::read_prompt(const at::Tensor& features) {
  feature_reader(others_, [](const auto& other) { return other.get(); })->read_prompt(features);
}

void SpecinferDrafter::begin(std::span<const TokenId> prompt) {
  sequence_->begin(prompt);
  for (const auto& other : others_) other->begin(prompt);
}

CandidateTree SpecinferDrafter::propose(const DraftContext& context, const Random& random) {
  const auto children = [&](const DraftedTree& drafted, int32_t node) {
    const auto depth = static_cast<size_t>(drafted.depths[static_cast<size_t>(node)]);
    return depth < config_.expansion.size() ? config_.expansion[depth] : 0;
  };
  CandidateTree drafted = grow_tree(*sequence_, choice_, context, random, children).tree;
  at::Tensor draft_probs = std::exchange(drafted.draft_probs, {});
  TreeBuilder tree(context, std::move(drafted));
  for (const auto& other : others_) fold_in(other->propose(context, random), tree);
  CandidateTree all = std::move(tree).take();
  if (draft_probs.defined()) all.draft_probs = with_point_masses(draft_probs, all.tokens);
  return all;
}

void SpecinferDrafter::observe(const CandidateTree& tree, const TargetOutput& output,
                               const Acceptance& accepted) {
  sequence_->keep(accepted.path);
  for (const auto& other : others_) other->observe(tree, output, accepted);
}

const DrafterSpec kSpecinferDrafter{
    .kind = DrafterKind::Specinfer,
    .summary = "a draft model's tree with other drafters' trees folded in",
    .level = SupportLevel::Research,
    .needs =
        [](const InferConfig& config) {
          DraftNeeds needs = needs_inside(config, config.specinfer.drafters);
          needs.draft = true;
          return needs;
        },
    .make = [](const InferConfig& config, const DraftParts& parts) -> DrafterFactory {
      return [specinfer = config.specinfer, model = parts.draft, choice = draft_choice(config),
              inner = make_inside(config, parts, config.specinfer.drafters)] {
        std::vector<std::unique_ptr<Drafter>> drafters;
        for (const DrafterFactory& make : inner) drafters.push_back(make());
        return std::make_unique<SpecinferDrafter>(specinfer, model->open(), choice,
                                                  std::move(drafters));
      };
    }};

}  // namespace medusa
