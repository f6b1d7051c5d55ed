// Python's str by code points, over UTF-8. Bytes that are no UTF-8 count as one character each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// One view of the text for each character.
std::vector<std::string_view> characters(std::string_view text);

/// Number of characters.
int64_t length(std::string_view text);

/// What Python's str.isspace and \s mean: Unicode's white space and four separators of ASCII.
bool is_python_space(uint32_t codepoint);

enum class Side { Left, Right, Both };

/// Without the given characters (white space, if none are given) at its ends.
std::string_view strip(std::string_view text, std::optional<std::string_view> characters_to_strip,
                       Side side);

/// Case by Unicode's simple mappings; of the full ones only that of ß.
std::string lower(std::string_view text);
std::string upper(std::string_view text);
std::string capitalize(std::string_view text);  // first letter as in a title, the rest lower

/// Python's str.title: a capital after anything but a letter.
std::string title(std::string_view text);

/// Jinja's filter title: upper case after space, hyphen and opening brackets only.
std::string title_words(std::string_view text);

/// At most so many parts split off (negative: no limit); without a separator at white space, where
/// empty parts are dropped. The separator is not empty.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t most,
                                    bool from_right);

/// At the line ends that str.splitlines knows; these are dropped unless keep_ends.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

/// str.isdigit and its kin: true for a text that is not empty and of that class all over.
bool all_digits(std::string_view text);
bool all_letters(std::string_view text);
bool all_letters_or_digits(std::string_view text);
bool all_spaces(std::string_view text);

/// str.islower, str.isupper: cased letters are there and all of that case.
bool is_lower(std::string_view text);
bool is_upper(std::string_view text);

/// Whether str.isprintable holds: repr() writes other characters as escapes.
bool is_printable(uint32_t codepoint);

/// Appends the character in UTF-8; U+FFFD for what is none (surrogates).
void append_character(std::string& text, uint32_t codepoint);

/// An empty text to be replaced stands between all characters, as in Python.
/// @param most  replacements; negative: no limit.
/// @throws Error  the result would be too large.
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t most,
                    Heap& heap);

}  // namespace medusa::jinja
