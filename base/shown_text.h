// Text that came from a file, a model or the command line, made harmless for a terminal, or quoted
// for what reads it back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace medusa {

/// What a terminal may obey instead of showing: C0 but newline and tab, DEL, C1, and the characters
/// that turn the direction of the text after them (embeddings, overrides and isolates).
bool is_control(uint32_t codepoint);

/// The text with these characters as \x1b, \u009b or \u202e, and bytes that are not UTF-8 as \x9b.
/// A text that it has made stays as it is.
std::string shown_text(std::string_view text);

/// The same, with newlines and tabs as \n and \t, too: for what stands inside a sentence.
std::string shown_in_line(std::string_view text);

/// The same as shown_text() for JSON, in whose strings U+007F and above may stand as they are:
/// \u009b. The object it says is the same.
/// @param text  JSON as nlohmann's dump() gives it, so that C0 is escaped and all of it UTF-8.
std::string shown_json(std::string_view text);

/// A word as a shell reads it back.
std::string shell_word(const std::string& word);

/// A YAML scalar that is this text, in quotes.
std::string yaml_text(const std::string& text);

}  // namespace medusa
