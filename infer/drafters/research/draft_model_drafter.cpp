#include "infer/drafters/research/draft_model_drafter.h"

#include "infer/draft_models/grow_tree.h"
#include "infer/drafter_spec.h"
#include "infer/factory.h"
#include "infer/infer_config.h"

namespace medusa {

void DraftModelDrafter::begin(std::span<const TokenId> prompt) { sequence_->begin(prompt); }

CandidateTree DraftModelDrafter::propose(const DraftContext& context, const Random& random) {
  const auto children = [&](const DraftedTree& drafted, int32_t node) {
    if (drafted.depths[static_cast<size_t>(node)] >= schedule_->length()) return 0;
    return node == 0 || schedule_->goes_on(drafted.probabilities.back()) ? 1 : 0;
  };
  DraftedTree drafted = grow_tree(*sequence_, choice_, context, random, children);
  probabilities_.assign(drafted.probabilities.begin() + 1, drafted.probabilities.end());
  return std::move(drafted.tree);
}

void DraftModelDrafter::observe(const CandidateTree& /*tree*/, const TargetOutput& /*output*/,
                                const Acceptance& accepted) {
  schedule_->observe(probabilities_, accepted.path.size());
  sequence_->keep(accepted.path);
}

namespace {

/// A chain of a draft model. `heuristic` learns from text to text, the others anew in each.
DrafterFactory chain_factory(DraftModel& model, const DraftChoice& choice,
                             const DraftScheduleConfig& config) {
  const bool learns = config.kind == DraftScheduleKind::Heuristic;
  const auto common = learns ? std::make_shared<DraftSchedule>(config) : nullptr;
  return [=, &model] {
    return std::make_unique<DraftModelDrafter>(
        model.open(), choice, learns ? common : std::make_shared<DraftSchedule>(config));
  };
}

}  // namespace

const DrafterSpec kDraftModelDrafter{
    .kind = DrafterKind::DraftModel,
    .summary = "a chain that a second, smaller model writes",
    .level = SupportLevel::Research,
    .needs = [](const InferConfig&) { return DraftNeeds{.draft = true}; },
    .make =
        [](const InferConfig& config, const DraftParts& parts) {
          return chain_factory(*parts.draft, draft_choice(config), config.draft_model.schedule);
        }};

const DrafterSpec kLayerSkipDrafter{
    .kind = DrafterKind::LayerSkip,
    .summary = "a chain that the target writes without some of its layers, on its own cache",
    .level = SupportLevel::Research,
    .needs = [](const InferConfig&) { return DraftNeeds{.skipping = true}; },
    .make =
        [](const InferConfig& config, const DraftParts& parts) {
          return chain_factory(*parts.skipping, draft_choice(config), config.layer_skip.schedule());
        }};

}  // namespace medusa
