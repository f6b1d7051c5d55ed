// Values as text: Python's str() and repr().
#pragma once

#include <string>

#include "data/chat/jinja/heap.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// What {{ value }} writes: "None", "True", "1.5", "['a', 1]"; nothing for an undefined value.
/// @throws Error  what Python would print with an address: functions, generators, loops.
std::string print(const Value& value, Heap& heap);

/// The same; quotes a text: 'it\'s'.
std::string print_quoted(const Value& value, Heap& heap);

/// & < > ' " as HTML wants them.
std::string escape_html(const std::string& text);

}  // namespace medusa::jinja
