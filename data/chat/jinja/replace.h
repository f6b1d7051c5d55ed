// str.replace.
#pragma once

#include <string>
#include <string_view>

#include "data/chat/jinja/heap.h"

namespace medusa::jinja {

/// An empty text to be replaced stands between all characters, as in Python.
/// @param most  replacements; negative: no limit.
/// @throws Error  the result would be too large.
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t most,
                    Heap& heap);

}  // namespace medusa::jinja
