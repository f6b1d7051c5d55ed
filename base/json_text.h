// JSON as text: one that any reader takes, one that nests too deeply to be parsed, and what is
// wrong with one, for people.
#pragma once

#include <cstddef>
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

/// True if lists and objects lie in each other deeper than the files of models have them; copying
/// or printing such a value would exhaust the stack. May also say so of a text that is not JSON.
inline bool nests_too_deeply(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (depth > 100) return true;
  }
  return false;
}

}  // namespace medusa
