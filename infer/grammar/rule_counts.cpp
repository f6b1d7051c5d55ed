#include "infer/grammar/rule_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/error.h"

namespace medusa {
namespace {

constexpr uint64_t kMostWrittenOut = 100'000;  // bytes of a text, each time that it comes
constexpr uint64_t kLargestRuleCount = 1'000'000;

/// The place behind a quoted text or a class, whose end is this character.
size_t behind(std::string_view rules, size_t begin, char end) {
  size_t at = begin + 1;
  while (at < rules.size() && rules[at] != end) at += rules[at] == '\\' ? 2 : 1;
  return std::min(at + 1, rules.size());
}

/// The largest number of a count; numbers that 64 bits do not hold are larger than any.
uint64_t largest_number(std::string_view count) {
  uint64_t out = 0;
  while (!count.empty()) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), number);
    if (error == std::errc::result_out_of_range) return UINT64_MAX;
    out = std::max(out, number);
    count.remove_prefix(std::max<size_t>(1, static_cast<size_t>(end - count.data())));
  }
  return out;
}

}  // namespace

void expect_short_counts(std::string_view rules) {
  size_t text_bytes = 0;  // of the quoted text that a count may follow
  for (size_t at = 0; at < rules.size();) {
    const char c = rules[at];
    if (c == '"') {
      const size_t end = behind(rules, at, '"');
      text_bytes = end - at;
      at = end;
    } else if (c == '{') {
      const size_t end = std::min(rules.find('}', at), rules.size());
      const uint64_t count = largest_number(rules.substr(at, end - at));
      const uint64_t most = text_bytes > 0 ? kMostWrittenOut / text_bytes : kLargestRuleCount;
      if (count > most)
        throw UserError(fmt::format(
            "the grammar has the count {} at character {}, expected at most {} there; write * or "
            "+, or a rule in place of the text",
            rules.substr(at, std::min<size_t>(end + 1 - at, 40)), at + 1, most));
      at = end;
      text_bytes = 0;
    } else if (c == '[') {
      at = behind(rules, at, ']');
      text_bytes = 0;
    } else if (c == '#') {
      at = std::min(rules.find('\n', at), rules.size());
    } else {
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') text_bytes = 0;
      ++at;
    }
  }
}

}  // namespace medusa
