// Settings -> drafter and rule: the one table of both.
#pragma once

#include <memory>

#include "infer/decoder.h"
#include "infer/infer_config.h"

namespace medusa {

class HeadGuesser;
struct TreeShape;

/// Which parts a drafter is made from.
struct DraftNeeds {
  bool heads = false;  // a guesser
  bool tree = false;   // a choice tree
};

/// The parts themselves, kept by reference. A part that is needed and null is a bug of the caller.
struct DraftParts {
  HeadGuesser* guesser = nullptr;
  const TreeShape* shape = nullptr;
};

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config);
DraftNeeds needs_of(const InferConfig& config);

/// Makes config.drafter, with its own settings.
DrafterFactory make_drafter_factory(const InferConfig& config, const DraftParts& parts);

}  // namespace medusa
