// The methods of texts, dicts and lists that templates call. Those that would change their object
// are not there: transformers' sandbox forbids them too.
#pragma once

#include <optional>
#include <string_view>

#include "data/chat/jinja/heap.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// A function bound to the object; nullopt: no such method.
std::optional<Value> find_method(const Value& object, std::string_view name, Heap& heap);

/// A method of a text: how its file hands them to find_method.
using TextMethod = Value (*)(const Text& self, const Arguments& arguments, Heap& heap);
TextMethod find_text_method(std::string_view name);  // null: none

}  // namespace medusa::jinja
