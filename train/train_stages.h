// Which stages a training run has, in order.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace medusa {

enum class StageKind {
  Heads,  // Medusa-1: the backbone is frozen
  Joint,  // Medusa-2: backbone and heads together
};

template <>
struct EnumNames<StageKind> {
  static constexpr std::array<std::pair<const char*, StageKind>, 2> values{
      {{"heads", StageKind::Heads}, {"joint", StageKind::Joint}}};
};

/// @throws UserError  none, one twice, or heads behind joint.
void check_stages(const std::vector<StageKind>& stages);

}  // namespace medusa
