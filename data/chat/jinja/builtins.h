// What templates call: filters, tests, methods and functions.
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <string_view>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// value|name(arguments)
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

/// value is name(arguments)
/// @throws Error  no such test, or it cannot judge this value.
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap);

/// object.name(arguments): a function bound to the object; nullopt: no such method. Methods that
/// would change their object are not there: transformers' sandbox forbids them too.
std::optional<Value> find_method(const Value& object, std::string_view name, Heap& heap);

/// The functions that every template can call: range, dict, namespace, raise_exception and, if a
/// time is given, strftime_now.
Scope make_globals(const std::optional<std::tm>& now, Heap& heap);

}  // namespace medusa::jinja
