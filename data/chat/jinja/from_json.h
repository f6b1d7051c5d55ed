// JSON -> the values that templates compute with.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/chat/jinja/heap.h"

namespace medusa::jinja {

/// Objects keep the order of their keys.
/// @throws Error  the heap's limits are passed.
Value from_json(const nlohmann::ordered_json& json, Heap& heap);

}  // namespace medusa::jinja
