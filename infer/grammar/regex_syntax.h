// Regular expressions that the grammar library follows to the letter.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "infer/grammar/schema_time.h"

namespace medusa {

/// An expression that says what no grammar of ours can hold.
class UnsupportedRegex : public UserError {
 public:
  using UserError::UserError;
};

/// The same expression in a form that the grammar library reads to the letter: without anchors and
/// names, and with large counts as counts of counts. What it would leave out or read otherwise is
/// refused: assertions (lookahead, word boundaries), back references, flags, anchors inside,
/// escapes that it does not know. What it refuses itself may pass.
/// @throws UnsupportedRegex  names the construct and its place.
std::string supported_regex(std::string_view expression);

/// An expression for what lies between the quotes of a JSON string. Its texts match the given one
/// as a whole; those with characters that JSON escapes are left out. It is in a form that the
/// library does not compile by its automata, which confuse counts and repetitions behind each other
/// (xgrammar 0.2.8: "(ab+)?" has the text "b").
/// @param time  that reading it may take.
/// @throws UnsupportedRegex  as above, or the expression names a character that JSON escapes.
/// @throws UserError         the time is over.
std::string regex_of_json_string(std::string_view expression, const SchemaTime& time = {});

}  // namespace medusa
