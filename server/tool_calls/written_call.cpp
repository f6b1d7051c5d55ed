#include "server/tool_calls/written_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace medusa {
namespace {

/// Behind the text whose first mark is at `at`. @param json  is some.
size_t end_of_string(std::string_view json, size_t at) {
  for (++at; json[at] != '"'; ++at)
    if (json[at] == '\\') ++at;
  return at + 1;
}

constexpr std::string_view kJsonSpace = " \t\r\n";

size_t end_of_space(std::string_view json, size_t at) {
  return std::min(json.find_first_not_of(kJsonSpace, at), json.size());
}

/// Behind the value at `at`, which is a member of an object. @param json  is some.
size_t end_of_member(std::string_view json, size_t at) {
  for (int depth = 0;;) {
    const char c = json[at];
    if (depth == 0 && (c == ',' || c == '}')) return at;
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    at = c == '"' ? end_of_string(json, at) : at + 1;
  }
}

/// What is written for a key, the last of several. @param object  JSON; the key is there.
std::string_view written_value(std::string_view object, std::string_view key) {
  std::string_view found;
  for (size_t at = end_of_space(object, object.find('{') + 1); object[at] == '"';) {
    const size_t end_of_key = end_of_string(object, at);
    const bool is_it = nlohmann::json::parse(object.substr(at, end_of_key - at)) == key;
    const size_t begin = end_of_space(object, end_of_space(object, end_of_key) + 1);  // behind ':'
    at = end_of_member(object, begin);
    if (is_it) found = object.substr(begin, at - begin);
    if (object[at] == ',') at = end_of_space(object, at + 1);
  }
  return found.substr(0, found.find_last_not_of(kJsonSpace) + 1);
}

/// The code unit that four hexadecimal digits at `at` stand for; -1: there are none.
int code_unit(std::string_view text, size_t at) {
  int unit = -1;
  const auto digits = text.substr(std::min(at, text.size()), 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
  return error == std::errc() && end - digits.data() == 4 ? unit : -1;
}

/// Copies what a backslash begins. One half of a surrogate pair alone becomes U+FFFD.
void copy_escape(std::string_view text, size_t& at, std::string& out) {
  const auto unit_at = [&](size_t from) {
    return text.substr(std::min(from, text.size())).starts_with("\\u") ? code_unit(text, from + 2)
                                                                       : -1;
  };
  const int unit = unit_at(at), next = unit_at(at + 6);
  const bool is_high = unit >= 0xD800 && unit < 0xDC00;
  const bool is_pair = is_high && next >= 0xDC00 && next < 0xE000;
  const bool is_alone = unit >= 0xD800 && unit < 0xE000 && !is_pair;
  const size_t size = is_pair ? 12 : unit >= 0 ? 6 : 2;
  out += is_alone ? std::string_view("\\ufffd") : text.substr(at, size);
  at += size;
}

/// Copies a number; one beyond all that a double holds becomes the largest.
void copy_number(std::string_view text, size_t& at, std::string& out) {
  const size_t end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
  const std::string number(text.substr(at, end - at));
  if (std::isinf(std::strtod(number.c_str(), nullptr)))
    out += fmt::format("{}{}", number[0] == '-' ? "-" : "", std::numeric_limits<double>::max());
  else
    out += number;
  at = end;
}

/// The same JSON without what RFC 8259 allows and parsers refuse (section 6: numbers beyond a
/// double's range; 8.2: half of a surrogate pair).
std::string plain_json(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\')
      copy_escape(text, at, out);
    else if (!in_string && (c == '-' || (c >= '0' && c <= '9')))
      copy_number(text, at, out);
    else
      out += text[at++];
  }
  return out;
}

}  // namespace

std::optional<ToolCall> read_call(std::string_view written) {
  if (nests_too_deeply(written)) return std::nullopt;
  const std::string text = plain_json(written);
  const auto call = nlohmann::json::parse(text, nullptr, false);
  if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return std::nullopt;
  ToolCall out{"", call["name"].get<std::string>(), "{}"};
  if (const auto arguments = call.find("arguments"); arguments != call.end()) {
    if (!arguments->is_object()) return std::nullopt;
    out.arguments = written_value(text, "arguments");
  }
  return out;
}

}  // namespace medusa
