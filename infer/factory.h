// Settings -> drafter and rule.
#pragma once

#include <memory>

#include "infer/decoder.h"
#include "infer/draft_models/draft_choice.h"
#include "infer/drafter_spec.h"
#include "infer/infer_config.h"

namespace medusa {

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config);

/// Gives what config.drafter is made from.
DraftNeeds needs_of(const InferConfig& config);

/// Makes config.drafter, with its own settings.
DrafterFactory make_drafter_factory(const InferConfig& config, const DraftParts& parts);

/// Says how a draft model's tokens are chosen so that config's rule is exact.
DraftChoice draft_choice(const InferConfig& config);

}  // namespace medusa
