#include "infer/grammar/code_points.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace medusa {

CodePoints::CodePoints(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges) {
  for (const auto& [first, last] : ranges) add(first, last);
}

void CodePoints::add(uint32_t first, uint32_t last) {
  ranges_.emplace_back(first, last);
  in_order_ = false;
}

void CodePoints::add(const CodePoints& others) {
  for (const auto& [first, last] : others.ranges()) add(first, last);
}

const CodePoints::Ranges& CodePoints::ranges() const {
  if (in_order_) return ranges_;
  std::sort(ranges_.begin(), ranges_.end());
  Ranges merged;
  for (const auto& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, range.second);
    else
      merged.push_back(range);
  }
  ranges_ = std::move(merged);
  in_order_ = true;
  return ranges_;
}

CodePoints CodePoints::complement() const {
  CodePoints out;
  uint32_t next = 0;
  for (const auto& [first, last] : ranges()) {
    if (next < first) out.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast) out.ranges_.emplace_back(next, kLast);
  return out;
}

CodePoints CodePoints::without(const CodePoints& others) const {
  CodePoints left = complement();
  left.add(others);
  return left.complement();
}

bool CodePoints::contains(uint32_t code) const {
  return std::any_of(ranges().begin(), ranges().end(), [code](const auto& range) {
    return range.first <= code && code <= range.second;
  });
}

std::string CodePoints::to_class() const {
  MEDUSA_ASSERT(!empty());
  constexpr uint32_t kCaret = '^';  // the library reads it as a negation in whatever form it comes
  // It writes some codes by hexadecimal digits, to which it counts those behind them, too: such
  // codes stand behind all that may be digits.
  const auto comes_first = [](const auto& range) {
    return range.first >= ' ' && range.first < 0x7F;
  };
  std::string out;
  const auto put = [&out](uint32_t first, uint32_t last) {
    out += first == last ? fmt::format("\\u{{{:x}}}", first)
                         : fmt::format("\\u{{{:x}}}-\\u{{{:x}}}", first, last);
  };
  for (const bool at_first : {true, false})
    for (const auto& range : ranges()) {
      if (comes_first(range) != at_first) continue;
      if (range.first != kCaret)
        put(range.first, range.second);
      else if (range.second > kCaret)
        put(kCaret + 1, range.second);
    }
  const bool begins_with_caret = std::any_of(
      ranges().begin(), ranges().end(), [](const auto& range) { return range.first == kCaret; });
  if (begins_with_caret && out.empty()) return "\\^";
  if (begins_with_caret) put(kCaret, kCaret);
  return "[" + out + "]";
}

CodePoints digits() { return {{'0', '9'}}; }

CodePoints word_characters() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }

CodePoints white_space() {
  return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

CodePoints surrogates() { return {{0xD800, 0xDFFF}}; }

CodePoints escaped_in_json() { return {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0xD800, 0xDFFF}}; }

}  // namespace medusa
