// Jinja source -> lexemes. White space around tags is dropped as transformers sets Jinja up:
// trim_blocks (no line end behind a block), lstrip_blocks (no indent before one), and no line end
// at the end of the source.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/chat/jinja/error.h"

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

/// The parsers' place in the lexemes.
class LexemeStream {
 public:
  using Kind = Lexeme::Kind;

  explicit LexemeStream(std::vector<Lexeme> lexemes) : lexemes_(std::move(lexemes)) {}

  const Lexeme& peek(size_t ahead = 0) const {
    return lexemes_[std::min(at_ + ahead, lexemes_.size() - 1)];
  }
  int line() const { return peek().line; }
  bool at(Kind kind) const { return peek().kind == kind; }
  bool at_name(std::string_view name) const { return peek().is(Kind::Name, name); }
  bool at_operator(std::string_view text) const { return peek().is(Kind::Operator, text); }

  Lexeme take() {
    Lexeme lexeme = peek();
    if (at_ + 1 < lexemes_.size()) ++at_;
    return lexeme;
  }
  bool take_name(std::string_view name) { return at_name(name) && (take(), true); }
  bool take_operator(std::string_view text) { return at_operator(text) && (take(), true); }

  Lexeme expect(Kind kind, std::string_view expected) {
    if (!at(kind)) fail(expected);
    return take();
  }
  void expect_operator(std::string_view text) {
    if (!take_operator(text)) fail(fmt::format("'{}'", text));
  }
  void expect_name(std::string_view name) {
    if (!take_name(name)) fail(fmt::format("'{}'", name));
  }

  [[noreturn]] void fail(std::string_view expected) const {
    throw Error(describe(peek()), std::string(expected), line());
  }

 private:
  std::vector<Lexeme> lexemes_;  // never empty: the last one is End
  size_t at_ = 0;
};

}  // namespace medusa::jinja
