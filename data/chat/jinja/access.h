// object.name, object[key], object[a:b], and what a loop runs through.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// A method comes before the key of a dict, as in Jinja. What is not there is undefined.
/// @throws Error  the object is undefined.
Value attribute(const Value& object, std::string_view name, Heap& heap);

/// A key comes before a method. What is not there is undefined.
/// @throws Error  the object is undefined.
Value subscript(const Value& object, const Value& key, Heap& heap);

/// The attribute that filters name by text: "function.name", "0", or an index.
Value follow(const Value& object, const Value& path, Heap& heap);

struct SliceBounds {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;
};

/// Of a text (by characters), a list or a tuple.
/// @throws Error  of anything else, or with a step of 0.
Value slice(const Value& object, const SliceBounds& bounds, Heap& heap);

/// Elements of a sequence, characters of a text, keys of a dict, nothing of an undefined value.
/// A generator is spent by it. @throws Error  the value is none of these.
std::vector<Value> iterate(const Value& value, Heap& heap);
bool is_iterable(const Value& value);

/// Python's len(); nullopt where it raises.
std::optional<int64_t> size_of(const Value& value, Heap& heap);

}  // namespace medusa::jinja
