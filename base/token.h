// The one integer type for token ids.
#pragma once

#include <cstdint>

namespace medusa {

using TokenId = int32_t;

}  // namespace medusa
