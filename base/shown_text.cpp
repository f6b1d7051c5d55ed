#include "base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/utf8.h"

namespace medusa {
namespace {

constexpr uint32_t kNotUtf8 = 0x110000;  // above all characters

/// @param replace  replace(out, character, bytes) appends what stands for a control character, or
///                 for kNotUtf8.
template <typename Replace>
std::string replace_controls(std::string_view text, const Replace& replace) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    const bool whole = step.kind == Utf8Step::Kind::Character;
    const std::string_view bytes = text.substr(0, step.size);
    if (whole && !is_control(step.codepoint))
      out += bytes;
    else
      replace(out, whole ? step.codepoint : kNotUtf8, bytes);
    text.remove_prefix(step.size);
  }
  return out;
}

}  // namespace

bool is_control(uint32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c <= 0x9F) ||
         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

std::string shown_text(std::string_view text) {
  return replace_controls(text, [](std::string& out, uint32_t c, std::string_view bytes) {
    if (c >= 0x80 && c != kNotUtf8) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
      return;
    }
    for (const char byte : bytes)
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
  });
}

std::string shown_in_line(std::string_view text) {
  std::string out;
  for (const char c : shown_text(text))
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  return out;
}

std::string shown_json(std::string_view text) {
  return replace_controls(text, [](std::string& out, uint32_t c, std::string_view) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", c == kNotUtf8 ? 0xFFFDU : c);
  });
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) != 0 || byte >= 0x80 ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  if (word.find_first_of("\"$`\\!") == std::string::npos) return "\"" + word + "\"";
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string yaml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace medusa
