// Settings -> drafter and rule: the one table of both.
#pragma once

#include <memory>

#include "infer/decoder.h"
#include "infer/infer_config.h"

namespace medusa {

class HeadGuesser;
struct TreeShape;

/// What drafters are made from; kept by reference. A drafter that needs a part that is null is a
/// bug of the caller, who loads what config.drafter asks for.
struct DraftParts {
  HeadGuesser* guesser = nullptr;
  const TreeShape* shape = nullptr;
};

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config);
DrafterFactory make_drafter_factory(DrafterKind kind, const DraftParts& parts);

}  // namespace medusa
