// The words of every JSON text, for targets that read some.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace medusa::fuzz {

/// @param own  words of the target's own.
inline std::vector<std::string> json_words(std::initializer_list<const char*> own) {
  std::vector<std::string> words{"{",    "}",    "[",  "]",  ",",    ":", "\"",
                                 "null", "true", "{}", "[]", "\"\"", "-1"};
  words.insert(words.end(), own.begin(), own.end());
  return words;
}

}  // namespace medusa::fuzz
