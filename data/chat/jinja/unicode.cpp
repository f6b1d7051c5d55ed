#include "data/chat/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace medusa::jinja {
namespace {

constexpr uint32_t kSharpS = 0xDF;  // ß, the one letter whose full mapping we do

uint32_t codepoint_of(std::string_view character) { return read_utf8(character).codepoint; }

utf8proc_int32_t proc(uint32_t codepoint) { return static_cast<utf8proc_int32_t>(codepoint); }

utf8proc_category_t category(uint32_t codepoint) { return utf8proc_category(proc(codepoint)); }

bool is_letter(uint32_t codepoint) {
  switch (category(codepoint)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_cased(uint32_t codepoint) {
  return utf8proc_tolower(proc(codepoint)) != proc(codepoint) ||
         utf8proc_toupper(proc(codepoint)) != proc(codepoint) ||
         category(codepoint) == UTF8PROC_CATEGORY_LL || category(codepoint) == UTF8PROC_CATEGORY_LU;
}

void append_upper(std::string& out, std::string_view character) {
  const uint32_t c = codepoint_of(character);
  if (c == kSharpS)
    out += "SS";
  else if (const auto mapped = utf8proc_toupper(proc(c)); mapped != proc(c))
    append_character(out, static_cast<uint32_t>(mapped));
  else
    out += character;
}

/// The form for the start of a word: differs from upper for ß and digraphs such as ǆ.
void append_title(std::string& out, std::string_view character) {
  const uint32_t c = codepoint_of(character);
  if (c == kSharpS)
    out += "Ss";
  else if (const auto mapped = utf8proc_totitle(proc(c)); mapped != proc(c))
    append_character(out, static_cast<uint32_t>(mapped));
  else
    out += character;
}

void append_lower(std::string& out, std::string_view character) {
  const uint32_t c = codepoint_of(character);
  if (const auto mapped = utf8proc_tolower(proc(c)); mapped != proc(c))
    append_character(out, static_cast<uint32_t>(mapped));
  else
    out += character;
}

template <typename Use>
void for_each_character(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const size_t size = read_utf8(text).size;
    use(text.substr(0, size));
    text.remove_prefix(size);
  }
}

template <typename Test>
bool all(std::string_view text, const Test& test) {
  if (text.empty()) return false;
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    if (!test(step.codepoint)) return false;
    text.remove_prefix(step.size);
  }
  return true;
}

bool is_digit(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND || c == 0xB2 || c == 0xB3 || c == 0xB9;
}

/// Bytes of the line end at the start of text; 0: none.
size_t line_end(std::string_view text) {
  if (text.starts_with("\r\n")) return 2;
  const Utf8Step step = read_utf8(text);
  const uint32_t c = step.codepoint;
  const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                    c == 0x2028 || c == 0x2029;
  return ends ? step.size : 0;
}

std::vector<std::string_view> split_at_space(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  const Side near = from_right ? Side::Right : Side::Left;
  for (text = strip(text, std::nullopt, near); !text.empty();
       text = strip(text, std::nullopt, near)) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(text);
      break;
    }
    size_t size = 0;
    while (size < text.size()) {
      const Utf8Step step = from_right ? read_utf8_backwards(text.substr(0, text.size() - size))
                                       : read_utf8(text.substr(size));
      if (is_python_space(step.codepoint)) break;
      size += step.size;
    }
    parts.push_back(from_right ? text.substr(text.size() - size) : text.substr(0, size));
    from_right ? text.remove_suffix(size) : text.remove_prefix(size);
  }
  return parts;
}

}  // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for_each_character(text, [&](std::string_view character) { out.push_back(character); });
  return out;
}

int64_t length(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(read_utf8(text).size);
  return count;
}

bool is_python_space(uint32_t codepoint) {
  return is_white_space(codepoint) || (codepoint >= 0x1C && codepoint <= 0x1F);
}

std::string_view strip(std::string_view text, std::optional<std::string_view> characters_to_strip,
                       Side side) {
  const std::vector<std::string_view> set = characters(characters_to_strip.value_or(""));
  const auto goes = [&](std::string_view character) {
    if (!characters_to_strip) return is_python_space(codepoint_of(character));
    return std::find(set.begin(), set.end(), character) != set.end();
  };
  if (side != Side::Right)
    while (!text.empty()) {
      const size_t size = read_utf8(text).size;
      if (!goes(text.substr(0, size))) break;
      text.remove_prefix(size);
    }
  if (side != Side::Left)
    while (!text.empty()) {
      const size_t size = read_utf8_backwards(text).size;
      if (!goes(text.substr(text.size() - size))) break;
      text.remove_suffix(size);
    }
  return text;
}

std::string lower(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::string_view character) { append_lower(out, character); });
  return out;
}

std::string upper(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::string_view character) { append_upper(out, character); });
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::string_view character) {
    out.empty() ? append_title(out, character) : append_lower(out, character);
  });
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for_each_character(text, [&](std::string_view character) {
    inside ? append_lower(out, character) : append_title(out, character);
    inside = is_cased(codepoint_of(character));
  });
  return out;
}

std::string title_words(std::string_view text) {
  std::string out;
  bool inside = false;
  for_each_character(text, [&](std::string_view character) {
    const uint32_t c = codepoint_of(character);
    const bool divides =
        is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    inside && !divides ? append_lower(out, character) : append_upper(out, character);
    inside = !divides;
  });
  return out;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t most,
                                    bool from_right) {
  std::vector<std::string_view> parts;
  if (!separator) {
    parts = split_at_space(text, most, from_right);
  } else {
    while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
      const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
      if (at == std::string_view::npos) break;
      const std::string_view before = text.substr(0, at);
      const std::string_view behind = text.substr(at + separator->size());
      parts.push_back(from_right ? behind : before);
      text = from_right ? before : behind;
    }
    parts.push_back(text);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = line_end(text.substr(at));
    if (end == 0) {
      at += read_utf8(text.substr(at)).size;
      continue;
    }
    lines.push_back(text.substr(begin, at - begin + (keep_ends ? end : 0)));
    begin = at += end;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

bool all_digits(std::string_view text) { return all(text, is_digit); }
bool all_letters(std::string_view text) { return all(text, is_letter); }
bool all_spaces(std::string_view text) { return all(text, is_python_space); }
bool all_letters_or_digits(std::string_view text) {
  return all(text, [](uint32_t c) {
    return is_letter(c) || is_digit(c) || category(c) == UTF8PROC_CATEGORY_NL ||
           category(c) == UTF8PROC_CATEGORY_NO;
  });
}

bool is_lower(std::string_view text) { return lower(text) == text && upper(text) != text; }

bool is_upper(std::string_view text) { return upper(text) == text && lower(text) != text; }

bool is_printable(uint32_t codepoint) {
  switch (category(codepoint)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return codepoint == ' ';
    default:
      return true;
  }
}

void append_character(std::string& text, uint32_t codepoint) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(proc(codepoint), bytes);
  const bool surrogate = codepoint >= 0xD800 && codepoint < 0xE000;
  if (size <= 0 || surrogate)
    text += kReplacement;
  else
    text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t most,
                    Heap& heap) {
  std::string out;
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    const size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    heap.check_room(1, out.size() + at + to.size() + 4);
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
    if (!from.empty()) continue;
    if (text.empty()) return out;
    const size_t size = read_utf8(text).size;
    out += text.substr(0, size);
    text.remove_prefix(size);
  }
  out += text;
  return out;
}

}  // namespace medusa::jinja
