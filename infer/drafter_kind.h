// The drafters by name.
#pragma once

#include <array>
#include <utility>

#include "base/fields.h"

namespace medusa {

enum class DrafterKind { None, Medusa, Blockwise, PromptLookup, Jacobi, Lookahead, Merge };

template <>
struct EnumNames<DrafterKind> {
  static constexpr auto values = std::to_array<std::pair<const char*, DrafterKind>>({
      {"none", DrafterKind::None},
      {"medusa", DrafterKind::Medusa},
      {"blockwise", DrafterKind::Blockwise},
      {"prompt_lookup", DrafterKind::PromptLookup},
      {"jacobi", DrafterKind::Jacobi},
      {"lookahead", DrafterKind::Lookahead},
      {"merge", DrafterKind::Merge},
  });
};

}  // namespace medusa
