#include "infer/grammar/hex_escapes.h"

#include <cctype>

namespace medusa {

std::string with_long_escapes(std::string_view text) {
  const auto is_digit = [&](size_t at) {
    return at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (text[at] != '\\' || ++at == text.size()) continue;
    if (text[at] == 'x' && is_digit(at + 1) && is_digit(at + 2))
      out += "u00";
    else
      out += text[at];
  }
  return out;
}

}  // namespace medusa
