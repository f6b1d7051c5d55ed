// The functions that every template can call.
#pragma once

#include <ctime>
#include <optional>

#include "data/chat/jinja/heap.h"
#include "data/chat/jinja/scope.h"

namespace medusa::jinja {

/// range, dict, namespace, raise_exception and, if a time is given, strftime_now.
Scope make_globals(const std::optional<std::tm>& now, Heap& heap);

}  // namespace medusa::jinja
