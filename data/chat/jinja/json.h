// JSON -> values, and the filter tojson as transformers sets it up: Python's json.dumps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

struct JsonStyle {
  bool ascii = false;                 // write other characters as \uXXXX
  std::optional<std::string> indent;  // of one level; lines are broken if it is given
  std::string item_separator = ", ";  // json.dumps' default with indent: ","
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// @throws Error  undefined values, generators, functions and namespaces have no JSON.
std::string to_json(const Value& value, const JsonStyle& style, Heap& heap);

/// Objects keep the order of their keys, integers their digits.
/// @param text  JSON.
/// @throws Error  the heap's limits are passed.
Value from_json(std::string_view text, Heap& heap);

}  // namespace medusa::jinja
