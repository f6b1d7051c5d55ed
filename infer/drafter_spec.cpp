#include "infer/drafter_spec.h"

#include <algorithm>

#include "base/check.h"
#include "infer/drafter.h"
#include "infer/infer_config.h"

namespace medusa {
namespace {

constexpr const DrafterSpec* kAll[] = {
    &kNoneDrafter,         &kMedusaDrafter,    &kBlockwiseDrafter, &kDraftModelDrafter,
    &kPromptLookupDrafter, &kJacobiDrafter,    &kLookaheadDrafter, &kSpecinferDrafter,
    &kSequoiaDrafter,      &kLayerSkipDrafter, &kRetrievalDrafter, &kSharedDrafter,
    &kEagle3Drafter,       &kMergeDrafter,
};

}  // namespace

const DrafterSpec kNoneDrafter{.kind = DrafterKind::None,
                               .summary = "the root alone: plain decoding, the baseline",
                               .level = SupportLevel::Supported,
                               .make = [](const InferConfig&, const DraftParts&) -> DrafterFactory {
                                 return [] { return std::make_unique<NoneDrafter>(); };
                               }};

const char* level_name(SupportLevel level) {
  switch (level) {
    case SupportLevel::Supported:
      return "supported";
    case SupportLevel::Experimental:
      return "experimental";
    case SupportLevel::Research:
      break;
  }
  return "research";
}

std::span<const DrafterSpec* const> all_drafters() { return kAll; }

const DrafterSpec& spec_of(DrafterKind kind) {
  const auto* const found =
      std::find_if(std::begin(kAll), std::end(kAll),
                   [kind](const DrafterSpec* each) { return each->kind == kind; });
  MEDUSA_ASSERT(found != std::end(kAll), enum_name(kind));
  return **found;
}

bool is_mergeable(DrafterKind kind) { return spec_of(kind).is_mergeable; }

std::string mergeable_names() {
  std::string names;
  for (const DrafterSpec* each : kAll)
    if (each->is_mergeable)
      names += (names.empty() ? "" : " | ") + std::string(enum_name(each->kind));
  return names;
}

bool has_parts(const DraftNeeds& needs, const DraftParts& parts) {
  return (!needs.heads || parts.runner != nullptr) && (!needs.tree || parts.shape != nullptr) &&
         (!needs.store || parts.store != nullptr) && (!needs.draft || parts.draft != nullptr) &&
         (!needs.skipping || parts.skipping != nullptr) &&
         (!needs.shared || parts.shared != nullptr) && (!needs.eagle3 || parts.eagle3 != nullptr) &&
         (!needs.drafting_cost || (parts.cost != nullptr && parts.cost->drafting));
}

DraftNeeds& DraftNeeds::operator|=(const DraftNeeds& more) {
  heads |= more.heads;
  drafts = std::max(drafts, more.drafts);
  tree |= more.tree;
  store |= more.store;
  cost |= more.cost;
  drafting_cost |= more.drafting_cost;
  draft |= more.draft;
  skipping |= more.skipping;
  shared |= more.shared;
  eagle3 |= more.eagle3;
  return *this;
}

DraftNeeds needs_inside(const InferConfig& config, std::span<const DrafterKind> kinds) {
  DraftNeeds all;
  for (const DrafterKind kind : kinds) {
    DraftNeeds inner = spec_of(kind).needs(config);
    inner.cost = inner.drafting_cost = false;
    all |= inner;
  }
  return all;
}

std::vector<DrafterFactory> make_inside(const InferConfig& config, const DraftParts& parts,
                                        std::span<const DrafterKind> kinds) {
  std::vector<DrafterFactory> factories;
  for (const DrafterKind kind : kinds) factories.push_back(spec_of(kind).make(config, parts));
  return factories;
}

}  // namespace medusa
