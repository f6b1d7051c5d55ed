#include "data/chat/jinja/string_literal.h"

#include <fmt/format.h>

#include <charconv>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/unicode.h"

namespace medusa::jinja {
namespace {

/// What one letter behind a backslash means; 0: nothing.
char simple_escape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return letter;
    default:
      return 0;
  }
}

/// Number of hexadecimal digits behind \x, \u and \U; 0: another letter.
size_t num_hex_digits(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// Appends the character that the digits at the start of rest write, and drops them.
void take_codepoint(std::string& out, std::string_view& rest, size_t num_digits, int base,
                    int line) {
  uint32_t codepoint = 0;
  const char* end = rest.data() + std::min(num_digits, rest.size());
  const auto read = std::from_chars(rest.data(), end, codepoint, base);
  if (read.ec != std::errc() || (base == 16 && read.ptr != rest.data() + num_digits) ||
      codepoint > 0x10FFFF)
    throw Error("an escape in a string is cut short or beyond Unicode",
                fmt::format("{} digits", num_digits), line);
  append_character(out, codepoint);
  rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
}

}  // namespace

std::string unescape(std::string_view body, int line) {
  std::string out;
  while (!body.empty()) {
    const char first = body[0];
    body.remove_prefix(1);
    if (first != '\\' || body.empty()) {
      out += first;
      continue;
    }
    const char letter = body[0];
    if (letter == 'N') throw Error("the escape \\N in a string", "the character itself", line);
    if (is_octal(letter)) {
      size_t digits = 1;
      while (digits < 3 && digits < body.size() && is_octal(body[digits])) ++digits;
      take_codepoint(out, body, digits, 8, line);
      continue;
    }
    body.remove_prefix(1);
    if (const size_t digits = num_hex_digits(letter))
      take_codepoint(out, body, digits, 16, line);
    else if (const char meant = simple_escape(letter))
      out += meant;
    else if (letter != '\n')  // a backslash at the end of a line joins it with the next
      out.append({'\\', letter});
  }
  return out;
}

}  // namespace medusa::jinja
