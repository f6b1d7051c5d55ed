// Settings -> drafter and rule: the one table of both.
#pragma once

#include <compare>
#include <memory>

#include "infer/decoder.h"
#include "infer/infer_config.h"

namespace medusa {

class DraftModel;
class HeadGuesser;
struct MedusaHeads;
class TextStore;
struct StepCost;
struct TreeShape;

/// Which parts a drafter is made from.
struct DraftNeeds {
  bool heads = false;          // a guesser
  int64_t guesses = 1;         // of each head, at least
  bool tree = false;           // a choice tree
  bool store = false;          // texts to look up
  bool cost = false;           // what rows cost; without it they cost nothing
  bool drafting_cost = false;  // and what the heads' guessing costs
  bool draft = false;          // a second model
  bool skipping = false;       // the target without some of its layers

  auto operator<=>(const DraftNeeds&) const = default;
  DraftNeeds& operator|=(const DraftNeeds& more);
};

/// The parts themselves, kept by reference. A part that is needed and null is a bug of the caller,
/// but for the cost.
struct DraftParts {
  HeadGuesser* guesser = nullptr;
  const TreeShape* shape = nullptr;
  const TextStore* store = nullptr;
  const StepCost* cost = nullptr;  // may be null
  DraftModel* draft = nullptr;
  DraftModel* skipping = nullptr;
  const MedusaHeads* heads = nullptr;  // that the guesser was made of; null: not kept
};

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config);
DraftNeeds needs_of(const InferConfig& config);

/// Makes config.drafter, with its own settings.
DrafterFactory make_drafter_factory(const InferConfig& config, const DraftParts& parts);

}  // namespace medusa
