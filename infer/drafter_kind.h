// The drafters by name.
#pragma once

#include <array>
#include <utility>

#include "base/fields.h"

namespace medusa {

enum class DrafterKind {
  None,
  Medusa,
  Blockwise,
  DraftModel,
  PromptLookup,
  Jacobi,
  Lookahead,
  Specinfer,
  Sequoia,
  LayerSkip,
  Retrieval,
  Shared,
  Eagle3,
  Merge,
};

template <>
struct EnumNames<DrafterKind> {
  static constexpr auto values = std::to_array<std::pair<const char*, DrafterKind>>({
      {"none", DrafterKind::None},
      {"medusa", DrafterKind::Medusa},
      {"blockwise", DrafterKind::Blockwise},
      {"draft_model", DrafterKind::DraftModel},
      {"prompt_lookup", DrafterKind::PromptLookup},
      {"jacobi", DrafterKind::Jacobi},
      {"lookahead", DrafterKind::Lookahead},
      {"specinfer", DrafterKind::Specinfer},
      {"sequoia", DrafterKind::Sequoia},
      {"layer_skip", DrafterKind::LayerSkip},
      {"retrieval", DrafterKind::Retrieval},
      {"shared", DrafterKind::Shared},
      {"eagle3", DrafterKind::Eagle3},
      {"merge", DrafterKind::Merge},
  });
};

}  // namespace medusa
