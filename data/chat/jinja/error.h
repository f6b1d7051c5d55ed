// What is wrong with a template, or with what it does to a conversation. Template adds the file and
// the line and makes a UserError of it; nothing else of this folder throws one.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace medusa::jinja {

/// Whoever evaluates an expression or a statement fills in the line, if it is not known yet.
struct Located : std::runtime_error {
  explicit Located(const std::string& what, int at_line = 0)
      : std::runtime_error(what), line(at_line) {}

  int line;  // from 1; 0: not known yet
};

struct Error : Located {
  Error(std::string what_was_found, std::string what_was_expected, int at_line = 0)
      : Located(what_was_found + ", expected " + what_was_expected, at_line),
        found(std::move(what_was_found)),
        expected(std::move(what_was_expected)) {}

  std::string found;
  std::string expected;
};

/// What raise_exception throws: the template's own word on the conversation.
struct Refusal : Located {
  using Located::Located;
};

}  // namespace medusa::jinja
