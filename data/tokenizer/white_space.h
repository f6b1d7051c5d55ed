// Space at the ends of texts, and texts of nothing else.
#pragma once

#include <string_view>

namespace medusa {

/// ASCII's: what Python's str.strip() removes of it.
inline constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

/// The text without white space at its ends.
inline std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

inline bool is_blank(std::string_view text) { return trim(text).empty(); }

}  // namespace medusa
