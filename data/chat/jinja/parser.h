// Jinja source -> statements.
#pragma once

#include <string_view>

#include "data/chat/jinja/syntax.h"

namespace medusa::jinja {

/// Knows for, if, set, macro, filter, generation, raw, break and continue.
/// @throws Error  with its line: bad syntax, or a statement it does not know.
Body parse(std::string_view source);

}  // namespace medusa::jinja
