// ==, <, in: as Python compares.
#pragma once

#include "data/chat/jinja/heap.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// 1 == 1.0 == True; texts, lists and dicts by content; everything else by identity.
bool equal(const Value& a, const Value& b, Heap& heap);

/// @throws Error  the types have no order.
bool less(const Value& a, const Value& b, Heap& heap);

/// item in container. @throws Error  the container cannot be searched.
bool contains(const Value& container, const Value& item, Heap& heap);

/// Whether it may be the key of a dict: a text, a number or none.
bool is_hashable(const Value& key);

/// equal() for what may be a key; false for all else.
bool equal_scalars(const Value& a, const Value& b);

}  // namespace medusa::jinja
