// Jinja source -> lexemes. White space around tags is dropped as transformers sets Jinja up:
// trim_blocks (no line end behind a block), lstrip_blocks (no indent before one), and no line end
// at the end of the source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace medusa::jinja {

struct Lexeme {
  enum class Kind {
    Data,        // text outside of tags
    PrintBegin,  // {{
    PrintEnd,    // }}
    BlockBegin,  // {%
    BlockEnd,    // %}
    Name,        // also keywords
    String,      // text: what it means, escapes undone
    Integer,     // text: without underscores, with its 0x, 0o or 0b
    Float,
    Operator,  // also brackets and punctuation
    End,
  };
  Kind kind = Kind::End;
  std::string text;
  int line = 1;

  bool is(Kind wanted, std::string_view wanted_text) const {
    return kind == wanted && text == wanted_text;
  }
};

/// Comments are gone; raw blocks are Data. The last lexeme is End.
/// @throws Error  with its line: a tag or a string that does not end, brackets that do not match, a
///                character that begins nothing.
std::vector<Lexeme> lex(std::string_view source);

/// How an error names a lexeme: "'endfor'", "the end of the template".
std::string describe(const Lexeme& lexeme);

}  // namespace medusa::jinja
