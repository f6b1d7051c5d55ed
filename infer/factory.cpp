#include "infer/factory.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/none_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/typical_rule.h"

namespace medusa {

RuleKind resolved_rule(const InferConfig& config) {
  if (config.rule != RuleKind::Auto) return config.rule;
  return config.sampling.temperature > 0 ? RuleKind::Match : RuleKind::Greedy;
}

void InferConfig::validate() const {
  const double temperature = sampling.temperature;
  if (rule == RuleKind::Greedy && temperature > 0)
    throw UserError(fmt::format(
        "rule 'greedy' with temperature {}, expected temperature 0; use rule 'match' to sample",
        number_text(temperature)));
  if (rule == RuleKind::Match && temperature == 0)
    throw UserError(
        "rule 'match' with temperature 0, expected a temperature above 0; use rule 'greedy' for "
        "the most probable text");
}

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config) {
  switch (resolved_rule(config)) {
    case RuleKind::Match:
      return std::make_unique<MatchRule>(config.sampling);
    case RuleKind::Typical:
      return std::make_unique<TypicalRule>(config.typical, config.sampling);
    case RuleKind::Auto:  // resolved above
    case RuleKind::Greedy:
      break;
  }
  return std::make_unique<GreedyRule>();
}

DrafterFactory make_drafter_factory(DrafterKind kind, const DraftParts& parts) {
  switch (kind) {
    case DrafterKind::Medusa:
      MEDUSA_ASSERT(parts.guesser != nullptr && parts.shape != nullptr);
      return [parts] { return std::make_unique<MedusaDrafter>(*parts.guesser, *parts.shape); };
    case DrafterKind::None:
      break;
  }
  return [] { return std::make_unique<NoneDrafter>(); };
}

}  // namespace medusa
