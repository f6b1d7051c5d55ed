#include "infer/factory.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "heads/head_guesser.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/none_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/rejection_rule.h"
#include "infer/rules/typical_rule.h"

namespace medusa {
namespace {

/// The settings with each of the drafters that are merged in turn.
std::vector<InferConfig> merged_configs(const InferConfig& config) {
  std::vector<InferConfig> out(config.merge.drafters.size(), config);
  for (size_t i = 0; i < out.size(); ++i) out[i].drafter = config.merge.drafters[i];
  return out;
}

DrafterFactory merge_factory(const InferConfig& config, const DraftParts& parts) {
  std::vector<DrafterFactory> factories;
  for (const InferConfig& member : merged_configs(config))
    factories.push_back(make_drafter_factory(member, parts));
  return [merge = config.merge, factories] {
    std::vector<std::unique_ptr<Drafter>> drafters;
    for (const DrafterFactory& make : factories) drafters.push_back(make());
    return std::make_unique<MergeDrafter>(merge, std::move(drafters));
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

DraftNeeds needs_of(const InferConfig& config) {
  DraftNeeds needs{
      .heads = config.drafter == DrafterKind::Medusa || config.drafter == DrafterKind::Blockwise,
      .tree = config.drafter == DrafterKind::Medusa};
  if (config.drafter == DrafterKind::Merge)
    for (const InferConfig& member : merged_configs(config)) {
      needs.heads |= needs_of(member).heads;
      needs.tree |= needs_of(member).tree;
    }
  return needs;
}

DrafterFactory make_drafter_factory(const InferConfig& config, const DraftParts& parts) {
  MEDUSA_ASSERT(parts.guesser != nullptr || !needs_of(config).heads);
  MEDUSA_ASSERT(parts.shape != nullptr || !needs_of(config).tree);
  switch (config.drafter) {
    case DrafterKind::None:
      break;
    case DrafterKind::Medusa:
      return [=] { return std::make_unique<MedusaDrafter>(*parts.guesser, *parts.shape); };
    case DrafterKind::Blockwise: {
      const int32_t block = block_of(config.blockwise.drafter, parts.guesser->num_heads());
      return [=] { return std::make_unique<BlockwiseDrafter>(*parts.guesser, block); };
    }
    case DrafterKind::PromptLookup:
      return [=] { return std::make_unique<PromptLookupDrafter>(config.prompt_lookup); };
    case DrafterKind::Jacobi:
      return [=] { return std::make_unique<JacobiDrafter>(config.jacobi); };
    case DrafterKind::Lookahead:
      return [=] { return std::make_unique<LookaheadDrafter>(config.lookahead); };
    case DrafterKind::Merge:
      return merge_factory(config, parts);
  }
  return [] { return std::make_unique<NoneDrafter>(); };
}

}  // namespace medusa
