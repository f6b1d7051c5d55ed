// Reading UTF-8 that may be broken or cut, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace medusa {

/// What stands at the start of some bytes.
struct Utf8Step {
  enum class Kind {
    Character,   // a whole character
    Invalid,     // bytes that can begin no character, whatever follows
    Incomplete,  // the text ends inside what may still become a character
  };
  Kind kind;
  size_t size;         // bytes, at least 1; of Invalid: as many as one U+FFFD replaces
  uint32_t codepoint;  // of Character; else U+FFFD
};

/// The replacement character U+FFFD.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// @param text  not empty. Overlong forms, surrogates and what lies above U+10FFFF are invalid.
Utf8Step read_utf8(std::string_view text);

/// The character that ends where text ends; Invalid if that is not a character.
Utf8Step read_utf8_backwards(std::string_view text);

bool is_valid_utf8(std::string_view text);

/// True if every byte is below 128.
bool is_ascii(std::string_view text);

/// Replaces each invalid sequence by U+FFFD (one per maximal subpart, as Unicode recommends).
std::string repair_utf8(std::string_view text);

/// Characters with the Unicode property White_Space.
bool is_white_space(uint32_t codepoint);

}  // namespace medusa
