// value is name(arguments)
#pragma once

#include <string_view>

#include "data/chat/jinja/heap.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// @throws Error  no such test, or it cannot judge this value.
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap);

}  // namespace medusa::jinja
