// The part of regular expressions that the grammar library follows to the letter.
#pragma once

#include <string_view>

namespace medusa {

enum class RegexPlace {
  WholeText,
  JsonString,  // between the quotes of a string: what JSON escapes cannot be written as it is
};

/// Refuses an expression of which the grammar library would leave something out or read it
/// otherwise: assertions (lookahead, word boundaries), back references, flags, anchors inside,
/// escapes that it does not know, and counts that it cannot hold. What it refuses itself may pass.
/// @throws UserError  names the construct and its place.
void expect_supported_regex(std::string_view expression, RegexPlace place);

}  // namespace medusa
