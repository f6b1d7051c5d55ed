// A look at JSON before it is parsed.
#pragma once

#include <cstddef>
#include <string_view>

namespace medusa {

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
