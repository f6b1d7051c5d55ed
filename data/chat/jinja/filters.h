// value|name(arguments)
#pragma once

#include <map>
#include <string_view>

#include "data/chat/jinja/heap.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// @throws Error  no such filter, or it cannot take this input or these arguments.
Value apply_filter(std::string_view name, const Value& input, const Arguments& arguments,
                   Heap& heap);

bool has_filter(std::string_view name);

/// By name; a filter lies in the file of what it gives or takes.
using Filter = Value (*)(const Value& input, const Arguments& arguments, Heap& heap);
using FilterTable = std::map<std::string_view, Filter>;
const FilterTable& text_filters();
const FilterTable& number_filters();
const FilterTable& sequence_filters();
const FilterTable& selection_filters();

}  // namespace medusa::jinja
