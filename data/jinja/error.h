// What is wrong with a template, or with what it does to a conversation. Template adds the file and
// the line and makes a UserError of it; nothing else of this folder throws one.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace medusa::jinja {

struct Error : std::runtime_error {
  Error(std::string what_was_found, std::string what_was_expected, int at_line = 0)
      : std::runtime_error(what_was_found + ", expected " + what_was_expected),
        found(std::move(what_was_found)),
        expected(std::move(what_was_expected)),
        line(at_line) {}

  std::string found;
  std::string expected;
  int line;  // from 1; 0: where the evaluation stands
};

/// What raise_exception throws: the template's own word on the conversation.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace medusa::jinja
