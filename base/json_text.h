// JSON -> text that any reader takes, and what is wrong with JSON, for people.
#pragma once

#include <string>
#include <string_view>

namespace medusa {

/// The text of an nlohmann::json. Bytes in its strings that are not UTF-8 (a path, a setting)
/// become U+FFFD: its own dump() throws then.
/// @param indent  spaces for each level; -1: all in one line.
template <typename Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// What an nlohmann exception says, without its names of classes and functions: "not JSON at line
/// 2, column 7", "key 'rows' not found", "is array, not an object".
/// @param what  the exception's what().
std::string json_error_text(std::string_view what);

}  // namespace medusa
