#include "infer/factory.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "heads/head_guesser.h"
#include "infer/drafters/adaptive_medusa_drafter.h"
#include "infer/drafters/dynamic_medusa_drafter.h"
#include "infer/drafters/none_drafter.h"
#include "infer/drafters/prefix_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/rejection_rule.h"
#include "infer/rules/typical_rule.h"

namespace medusa {
namespace {

constexpr int32_t kMostNodes = 64;  // of what a lone drafter looks up

/// config.drafter, its proposals not weighed against the cost of their rows.
DrafterFactory plain_factory(const InferConfig& config, const DraftParts& parts);

StepCost step_cost(const DraftParts& parts) { return parts.cost ? *parts.cost : StepCost{}; }

/// The drafters inside the one that config names.
std::vector<DrafterKind> inner_drafters(const InferConfig& config) {
  if (config.drafter == DrafterKind::Merge) return config.merge.drafters;
  if (config.drafter == DrafterKind::Specinfer) return config.specinfer.drafters;
  return {};
}

/// The settings with each of the inner drafters in turn.
std::vector<InferConfig> inner_configs(const InferConfig& config) {
  std::vector<InferConfig> out;
  for (const DrafterKind kind : inner_drafters(config)) out.emplace_back(config).drafter = kind;
  return out;
}

std::vector<DrafterFactory> inner_factories(const InferConfig& config, const DraftParts& parts) {
  std::vector<DrafterFactory> factories;
  for (const InferConfig& inner : inner_configs(config))
    factories.push_back(plain_factory(inner, parts));
  return factories;
}

DrafterFactory merge_factory(const InferConfig& config, const DraftParts& parts) {
  std::vector<bool> ask_heads;
  std::vector<std::shared_ptr<HitRates>> rates;
  for (const InferConfig& inner : inner_configs(config)) {
    ask_heads.push_back(needs_of(inner).heads);
    rates.push_back(rates_of_all_texts());
  }
  return [budget = config.merge.budget, make = inner_factories(config, parts), ask_heads, rates,
          cost = step_cost(parts), heads_worth = heads_worth_of_all_texts()] {
    std::vector<Proposer> proposers;
    for (size_t i = 0; i < make.size(); ++i)
      proposers.push_back({make[i](), ask_heads[i], rates[i]});
    return std::make_unique<MergeDrafter>(std::move(proposers), budget, cost, heads_worth);
  };
}

DrafterFactory medusa_factory(const MedusaConfig& config, HeadGuesser& guesser,
                              const TreeShape& shape) {
  if (!config.dynamic)
    return [&] { return behind_prefix(std::make_unique<MedusaDrafter>(guesser, shape), guesser); };
  const int32_t nodes = config.nodes.value_or(static_cast<int32_t>(shape.depths.size()));
  return [&, nodes] {
    return behind_prefix(std::make_unique<DynamicMedusaDrafter>(guesser, shape.temperatures, nodes),
                         guesser);
  };
}

/// How a draft model's tokens are chosen so that the rule is exact.
DraftChoice draft_choice(const InferConfig& config) {
  switch (resolved_rule(config)) {
    case RuleKind::Match:
    case RuleKind::Nucleus:
      return {DraftMode::Coupled, config.sampling};
    case RuleKind::Rejection:
      return {DraftMode::Drawn, config.sampling};
    case RuleKind::Auto:  // resolved above
    case RuleKind::Greedy:
    case RuleKind::Typical:
    case RuleKind::Blockwise:
      break;
  }
  return {DraftMode::Best, config.sampling};
}

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

DrafterFactory sequoia_factory(const InferConfig& config, const DraftParts& parts) {
  const bool medusa = config.sequoia.source == SequoiaSource::Medusa;
  const auto acceptance = std::make_shared<PositionalAcceptance>(/*by_depth=*/medusa);
  if (medusa)
    return [sequoia = config.sequoia, acceptance, guesser = parts.guesser] {
      return behind_prefix(std::make_unique<SequoiaMedusaDrafter>(sequoia, acceptance, *guesser),
                           *guesser);
    };
  return
      [sequoia = config.sequoia, acceptance, model = parts.draft, choice = draft_choice(config)] {
        return std::make_unique<SequoiaDrafter>(sequoia, acceptance, model->open(), choice);
      };
}

}  // namespace

RuleKind resolved_rule(const InferConfig& config) {
  if (config.rule != RuleKind::Auto) return config.rule;
  return config.sampling.temperature > 0 ? RuleKind::Match : RuleKind::Greedy;
}

void InferConfig::validate() const {
  const double temperature = sampling.temperature;
  const bool samples =
      rule == RuleKind::Match || rule == RuleKind::Nucleus || rule == RuleKind::Rejection;
  if ((rule == RuleKind::Greedy || rule == RuleKind::Blockwise) && temperature > 0)
    throw UserError(fmt::format(
        "rule '{}' with temperature {}, expected temperature 0; use rule 'match' to sample",
        enum_name(rule), number_text(temperature)));
  if (samples && temperature == 0)
    throw UserError(fmt::format(
        "rule '{}' with temperature 0, expected a temperature above 0; use rule 'greedy' for "
        "the most probable text",
        enum_name(rule)));
  if (rule == RuleKind::Nucleus && sampling.top_p == 1)
    throw UserError(
        "rule 'nucleus' with top_p 1, expected top_p below 1; use rule 'match' to sample from all "
        "tokens");
  if (rule == RuleKind::Blockwise && drafter != DrafterKind::Blockwise)
    throw UserError(fmt::format(
        "rule 'blockwise' with drafter '{}', expected drafter 'blockwise', whose block it judges; "
        "use rule 'greedy' or 'typical' with this drafter",
        enum_name(drafter)));
}

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config) {
  switch (resolved_rule(config)) {
    case RuleKind::Match:
    case RuleKind::Nucleus:
      return std::make_unique<MatchRule>(config.sampling);
    case RuleKind::Rejection:
      return std::make_unique<RejectionRule>(config.sampling);
    case RuleKind::Typical:
      return std::make_unique<TypicalRule>(config.typical, config.sampling);
    case RuleKind::Blockwise:
      return std::make_unique<BlockwiseRule>(config.blockwise.rule);
    case RuleKind::Auto:  // resolved above
    case RuleKind::Greedy:
      break;
  }
  return std::make_unique<GreedyRule>();
}

DraftNeeds& DraftNeeds::operator|=(const DraftNeeds& more) {
  heads |= more.heads;
  guesses = std::max(guesses, more.guesses);
  tree |= more.tree;
  store |= more.store;
  cost |= more.cost;
  drafting_cost |= more.drafting_cost;
  draft |= more.draft;
  skipping |= more.skipping;
  return *this;
}

DraftNeeds needs_of(const InferConfig& config) {
  DraftNeeds needs;
  switch (config.drafter) {
    case DrafterKind::Medusa:
      needs.heads = needs.tree = true;
      needs.cost = needs.drafting_cost = config.medusa.adaptive;
      break;
    case DrafterKind::Blockwise:
      needs.heads = true;
      break;
    case DrafterKind::Sequoia:
      if (config.sequoia.source == SequoiaSource::DraftModel) {
        needs.draft = true;
      } else {
        needs.heads = true;
        needs.guesses = kSequoiaMaxChildren;
      }
      break;
    case DrafterKind::DraftModel:
    case DrafterKind::Specinfer:
      needs.draft = true;
      break;
    case DrafterKind::LayerSkip:
      needs.skipping = true;
      break;
    case DrafterKind::Retrieval:
      needs.store = needs.cost = true;
      break;
    case DrafterKind::PromptLookup:
    case DrafterKind::Merge:
      needs.cost = true;
      break;
    case DrafterKind::None:
    case DrafterKind::Jacobi:
    case DrafterKind::Lookahead:
      break;
  }
  for (const InferConfig& each : inner_configs(config)) {
    DraftNeeds inner = needs_of(each);
    // They propose all that they find; whoever holds them weighs it.
    inner.cost = inner.drafting_cost = false;
    needs |= inner;
  }
  return needs;
}

DrafterFactory make_drafter_factory(const InferConfig& config, const DraftParts& parts) {
  const DrafterFactory plain = plain_factory(config, parts);
  if (config.drafter == DrafterKind::Medusa && config.medusa.adaptive)
    return [plain, shape = parts.shape, cost = step_cost(parts), rates = rates_of_all_texts()] {
      return std::make_unique<AdaptiveMedusaDrafter>(plain(), *shape, cost, rates);
    };
  if (config.drafter != DrafterKind::PromptLookup && config.drafter != DrafterKind::Retrieval)
    return plain;
  // What is looked up costs nothing, its rows do, and some texts never repeat anything.
  return [plain, cost = step_cost(parts), rates = rates_of_all_texts()] {
    std::vector<Proposer> alone;
    alone.push_back({plain(), /*asks_heads=*/false, rates});
    return std::make_unique<MergeDrafter>(std::move(alone), kMostNodes, cost);
  };
}

namespace {

DrafterFactory plain_factory(const InferConfig& config, const DraftParts& parts) {
  MEDUSA_ASSERT(parts.guesser != nullptr || !needs_of(config).heads);
  MEDUSA_ASSERT(parts.shape != nullptr || !needs_of(config).tree);
  MEDUSA_ASSERT(parts.store != nullptr || !needs_of(config).store);
  MEDUSA_ASSERT(parts.draft != nullptr || !needs_of(config).draft);
  MEDUSA_ASSERT(parts.skipping != nullptr || !needs_of(config).skipping);
  switch (config.drafter) {
    case DrafterKind::None:
      break;
    case DrafterKind::Medusa:
      return medusa_factory(config.medusa, *parts.guesser, *parts.shape);
    case DrafterKind::Blockwise: {
      const int32_t block = block_of(config.blockwise.drafter, parts.guesser->num_heads());
      return [=] {
        return behind_prefix(std::make_unique<BlockwiseDrafter>(*parts.guesser, block),
                             *parts.guesser);
      };
    }
    case DrafterKind::DraftModel:
      return chain_factory(*parts.draft, draft_choice(config), config.draft_model.schedule);
    case DrafterKind::LayerSkip:
      return chain_factory(*parts.skipping, draft_choice(config), config.layer_skip.schedule());
    case DrafterKind::Specinfer:
      return [specinfer = config.specinfer, model = parts.draft, choice = draft_choice(config),
              inner = inner_factories(config, parts)] {
        std::vector<std::unique_ptr<Drafter>> drafters;
        for (const DrafterFactory& make : inner) drafters.push_back(make());
        return std::make_unique<SpecinferDrafter>(specinfer, model->open(), choice,
                                                  std::move(drafters));
      };
    case DrafterKind::Sequoia:
      return sequoia_factory(config, parts);
    case DrafterKind::PromptLookup:
      return [=] { return std::make_unique<PromptLookupDrafter>(config.prompt_lookup); };
    case DrafterKind::Jacobi:
      return [=] { return std::make_unique<JacobiDrafter>(config.jacobi); };
    case DrafterKind::Lookahead:
      return [=] { return std::make_unique<LookaheadDrafter>(config.lookahead); };
    case DrafterKind::Retrieval:
      return [=] { return std::make_unique<RetrievalDrafter>(*parts.store, config.retrieval); };
    case DrafterKind::Merge:
      return merge_factory(config, parts);
  }
  return [] { return std::make_unique<NoneDrafter>(); };
}

}  // namespace

}  // namespace medusa
