// JSON -> values, and the filter tojson as transformers sets it up: Python's json.dumps.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

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

/// Objects keep the order of their keys.
/// @throws Error  the heap's limits are passed.
Value from_json(const nlohmann::ordered_json& json, Heap& heap);

}  // namespace medusa::jinja
