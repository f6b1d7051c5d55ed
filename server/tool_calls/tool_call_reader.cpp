#include "server/tool_calls/tool_call_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/tool_calls/written_call.h"

namespace medusa {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";

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
  auto call = read_call(std::string_view(held_).substr(kOpen.size(), close - kOpen.size()));
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
