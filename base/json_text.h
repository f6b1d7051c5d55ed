// JSON -> text that any reader takes.
#pragma once

#include <string>

namespace medusa {

/// The text of an nlohmann::json. Bytes in its strings that are not UTF-8 (a path, a setting)
/// become U+FFFD: its own dump() throws then.
/// @param indent  spaces for each level; -1: all in one line.
template <typename Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace medusa
