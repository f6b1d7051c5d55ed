#include "server/tool_calls/tool_call_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"

namespace medusa {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";

/// Behind the text whose first mark is at `at`. @param json  is some.
size_t end_of_string(std::string_view json, size_t at) {
  for (++at; json[at] != '"'; ++at)
    if (json[at] == '\\') ++at;
  return at + 1;
}

size_t end_of_space(std::string_view json, size_t at) {
  return std::min(json.find_first_not_of(kSpace, at), json.size());
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
  return found.substr(0, found.find_last_not_of(kSpace) + 1);
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

/// The call that stands between the marks; nothing: it is none.
std::optional<ToolCall> parsed(std::string_view written) {
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

/// Where a call's last mark begins; one inside a text of its JSON is none. npos: not there yet.
size_t find_close(std::string_view text) {
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') in_string = !in_string;
    if (in_string && text[at] == '\\')
      ++at;
    else if (!in_string && text.substr(at).starts_with(kClose))
      return at;
  }
  return std::string_view::npos;
}

/// Where what may become a call's first mark begins, with the white space before it.
size_t end_of_certain_text(std::string_view text) {
  size_t end = text.size();
  for (size_t size = std::min(text.size(), kOpen.size() - 1); size > 0; --size)
    if (text.ends_with(kOpen.substr(0, size))) {
      end = text.size() - size;
      break;
    }
  const size_t last = text.substr(0, end).find_last_not_of(kSpace);
  return last == std::string_view::npos ? 0 : last + 1;
}

}  // namespace

ToolCallReader::ToolCallReader(bool finds_calls, std::string id)
    : finds_calls_(finds_calls), id_(std::move(id)) {}

void ToolCallReader::say(std::string text, std::vector<AnswerPart>& out) {
  if (beside_call_) text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  if (text.empty()) return;
  beside_call_ = false;
  if (!out.empty() && !out.back().call)
    out.back().text += text;
  else
    out.push_back({std::move(text)});
}

/// @returns  whether held_ begins with a call now.
bool ToolCallReader::take_text(std::vector<AnswerPart>& out) {
  const size_t open = held_.find(kOpen);
  if (open == std::string::npos) {
    const size_t end = end_of_certain_text(held_);
    say(held_.substr(0, end), out);
    held_.erase(0, end);
    return false;
  }
  const size_t last = held_.substr(0, open).find_last_not_of(kSpace);
  const size_t end = last == std::string::npos ? 0 : last + 1;
  say(held_.substr(0, end), out);
  spaces_ = held_.substr(end, open - end);
  held_.erase(0, open);
  return true;
}

/// @returns  whether the call that held_ begins with is complete.
bool ToolCallReader::take_call(std::vector<AnswerPart>& out) {
  const size_t close = find_close(held_);
  if (close == std::string::npos) return false;
  const size_t end = close + kClose.size();
  auto call = parsed(std::string_view(held_).substr(kOpen.size(), close - kOpen.size()));
  if (call) {
    call->id = fmt::format("{}{:02x}", id_, num_calls_++);
    out.push_back({"", std::move(call)});
    beside_call_ = true;
  } else {
    say(spaces_ + held_.substr(0, end), out);
  }
  spaces_.clear();
  held_.erase(0, end);
  return true;
}

std::vector<AnswerPart> ToolCallReader::add(std::string_view text) {
  std::vector<AnswerPart> out;
  held_ += text;
  if (!finds_calls_) {
    say(std::exchange(held_, {}), out);
    return out;
  }
  for (;;) {
    if (!in_call_) in_call_ = take_text(out);
    if (!in_call_ || !take_call(out)) return out;
    in_call_ = false;
  }
}

std::vector<AnswerPart> ToolCallReader::finish() {
  std::vector<AnswerPart> out;
  std::string rest = std::exchange(spaces_, {}) + std::exchange(held_, {});
  say(std::move(rest), out);
  in_call_ = false;
  return out;
}

}  // namespace medusa
