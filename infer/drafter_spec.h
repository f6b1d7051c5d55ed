// The table of drafters: a row says what a drafter is, what it needs and how it is made. Each row
// is defined in its drafter's own file; help, checks, factory and tests go by the table.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "infer/decode_request.h"
#include "infer/drafter_kind.h"
#include "infer/step_cost.h"

namespace medusa {

class DraftModel;
class Eagle3Model;
class HeadsRunner;
class SharedTexts;
class TextStore;
struct InferConfig;
struct MedusaHeads;
struct TreeShape;

/// Which parts a drafter is made from.
struct DraftNeeds {
  bool heads = false;          // the heads runner
  int64_t drafts = 1;          // of each head, at least
  bool tree = false;           // a choice tree
  bool store = false;          // texts to look up
  bool cost = false;           // what rows cost; without it they cost nothing
  bool drafting_cost = false;  // and what the heads' drafting costs
  bool draft = false;          // a second model
  bool skipping = false;       // the target without some of its layers
  bool shared = false;         // answers that the process has finished
  bool eagle3 = false;         // an EAGLE-3 draft of the target

  auto operator<=>(const DraftNeeds&) const = default;
  DraftNeeds& operator|=(const DraftNeeds& more);
};

/// The parts themselves, kept by reference. A part that is needed and null is a bug of the caller,
/// but for the cost.
struct DraftParts {
  HeadsRunner* runner = nullptr;
  const TreeShape* shape = nullptr;
  const TextStore* store = nullptr;
  const StepCost* cost = nullptr;  // may be null
  DraftModel* draft = nullptr;
  DraftModel* skipping = nullptr;
  SharedTexts* shared = nullptr;
  Eagle3Model* eagle3 = nullptr;
  const MedusaHeads* heads = nullptr;  // that the heads runner was made of; null: not kept
  bool tree_adapts = false;  // where medusa.adaptive leaves it open; then the cost is there
};

/// Says whether everything that a drafter is made from is there.
bool has_parts(const DraftNeeds& needs, const DraftParts& parts);

/// Gives what rows cost; nothing where nobody says.
inline StepCost step_cost(const DraftParts& parts) {
  return parts.cost != nullptr ? *parts.cost : StepCost{};
}

/// How far the project stands by a part of itself.
enum class SupportLevel {
  Supported,     // measured faster than plain decoding, and kept so
  Experimental,  // works; whether it pays depends on text or machine
  Research,      // for comparison: slower than plain decoding where it was measured
};
const char* level_name(SupportLevel level);

struct DrafterSpec {
  DrafterKind kind;
  const char* summary;  // a line: what it proposes
  SupportLevel level;
  bool is_mergeable = false;  // its trees may be pruned: it chooses tokens outright and reads no
                              // rows of them
  DraftNeeds (*needs)(const InferConfig& config) = [](const InferConfig&) { return DraftNeeds{}; };
  /// Makes what proposes all that it finds.
  DrafterFactory (*make)(const InferConfig& config, const DraftParts& parts);
  /// Wraps it where nobody else weighs its proposals against the cost of their rows; null: as it
  /// is.
  DrafterFactory (*weigh)(const InferConfig& config, const DraftParts& parts,
                          DrafterFactory made) = nullptr;
};

/// Lists all drafters, in the order of --help.
std::span<const DrafterSpec* const> all_drafters();
const DrafterSpec& spec_of(DrafterKind kind);

bool is_mergeable(DrafterKind kind);
std::string mergeable_names();  // "medusa | blockwise | …"

/// Gives what drafters inside another one need: whoever holds them weighs their proposals.
DraftNeeds needs_inside(const InferConfig& config, std::span<const DrafterKind> kinds);
/// Makes these drafters, each with its own settings.
std::vector<DrafterFactory> make_inside(const InferConfig& config, const DraftParts& parts,
                                        std::span<const DrafterKind> kinds);

extern const DrafterSpec kNoneDrafter, kMedusaDrafter, kBlockwiseDrafter, kDraftModelDrafter,
    kPromptLookupDrafter, kJacobiDrafter, kLookaheadDrafter, kSpecinferDrafter, kSequoiaDrafter,
    kLayerSkipDrafter, kRetrievalDrafter, kSharedDrafter, kEagle3Drafter, kMergeDrafter;

}  // namespace medusa
