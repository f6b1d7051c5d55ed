#include "infer/grammar/rule_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "infer/grammar/counts.h"

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

/// A text or a class with \u00HH for each \xHH, to which the library counts all digits that follow.
std::string with_long_escapes(std::string_view item) {
  const auto is_digit = [&](size_t at) {
    return at < item.size() && std::isxdigit(static_cast<unsigned char>(item[at])) != 0;
  };
  std::string out;
  for (size_t at = 0; at < item.size(); ++at) {
    out += item[at];
    if (item[at] != '\\' || ++at == item.size()) continue;
    if (item[at] == 'x' && is_digit(at + 1) && is_digit(at + 2))
      out += "u00";
    else
      out += item[at];
  }
  return out;
}

struct Count {
  uint64_t least = 0;
  std::optional<uint64_t> most;  // nothing: any number
};

/// Of what stands between the braces. Numbers that 64 bits do not hold are larger than any.
/// @returns  nothing: it is no count, which the library will say.
std::optional<Count> count_of(std::string_view inside) {
  const auto number = [&]() -> std::optional<uint64_t> {
    uint64_t out = 0;
    const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), out);
    if (error == std::errc::invalid_argument) return std::nullopt;
    inside.remove_prefix(static_cast<size_t>(end - inside.data()));
    return error == std::errc::result_out_of_range ? UINT64_MAX : out;
  };
  const auto skip_spaces = [&] {
    inside.remove_prefix(std::min(inside.find_first_not_of(" \t\n\r"), inside.size()));
  };
  skip_spaces();
  const auto least = number();
  skip_spaces();
  if (!least) return std::nullopt;
  if (inside.empty()) return Count{*least, least};
  if (inside[0] != ',') return std::nullopt;
  inside.remove_prefix(1);
  skip_spaces();
  if (inside.empty()) return Count{*least, std::nullopt};
  const auto most = number();
  skip_spaces();
  if (!most || !inside.empty() || *most < *least) return std::nullopt;
  return Count{*least, most};
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

/// Reads rules, and writes the same ones without large counts.
class RuleReader {
 public:
  explicit RuleReader(std::string_view rules) : rules_(rules) {}

  std::string read() {
    while (at_ < rules_.size()) read_next();
    return out_;
  }

 private:
  void read_next() {
    const char c = rules_[at_];
    if (c == '{') return read_count();
    if (c == '"') return item(behind(rules_, at_, '"'), true);
    if (c == '[') return item(behind(rules_, at_, ']'), false);
    if (c == '#') return copy(std::min(rules_.find('\n', at_), rules_.size()));
    if (is_name_character(c)) {
      size_t end = at_;
      while (end < rules_.size() && is_name_character(rules_[end])) ++end;
      return item(end, false);
    }
    if (c == '(') {
      groups_.push_back(out_.size());
      item_at_.reset();
    } else if (c == ')') {
      item_at_.reset();
      if (!groups_.empty()) item_at_ = groups_.back();
      is_text_ = false;
      if (!groups_.empty()) groups_.pop_back();
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      item_at_.reset();
    }
    copy(at_ + 1);
  }

  void copy(size_t end) {
    out_ += rules_.substr(at_, end - at_);
    at_ = end;
  }

  /// What a count may follow.
  void item(size_t end, bool is_text) {
    item_at_ = out_.size();
    is_text_ = is_text;
    out_ += with_long_escapes(rules_.substr(at_, end - at_));
    at_ = end;
  }

  void read_count() {
    const size_t close = std::min(rules_.find('}', at_), rules_.size());
    const size_t end = std::min(close + 1, rules_.size());
    const auto count = count_of(rules_.substr(at_ + 1, close - at_ - 1));
    if (!item_at_ || !count) {  // wrong, as the library will say
      item_at_.reset();
      return copy(end);
    }
    const std::string item = out_.substr(*item_at_);
    const uint64_t most = is_text_ ? kMostWrittenOut / item.size() : kLargestRuleCount;
    if (std::max(count->least, count->most.value_or(0)) > most)
      throw UserError(fmt::format(
          "the grammar has the count {} at character {}, expected at most {} there; write * or "
          "+, or a rule in place of the text",
          rules_.substr(at_, std::min<size_t>(end - at_, 40)), at_ + 1, most));
    if (is_text_) {
      item_at_.reset();
      return copy(end);
    }
    out_.resize(*item_at_);
    out_ += counted(item, static_cast<int64_t>(count->least),
                    count->most ? std::optional(static_cast<int64_t>(*count->most)) : std::nullopt);
    if (out_.size() > kMostCountedBytes)
      throw UserError(
          fmt::format("the grammar has the count {} at character {} around others like it, "
                      "expected fewer large counts in each other; give the inner ones a rule",
                      rules_.substr(at_, std::min<size_t>(end - at_, 40)), at_ + 1));
    at_ = end;
    item_at_.reset();
  }

  std::string_view rules_;
  size_t at_ = 0;
  std::string out_;
  std::vector<size_t> groups_;     // where in out_ the open ones begin
  std::optional<size_t> item_at_;  // where in out_ what came last begins, if a count may follow
  bool is_text_ = false;           // it is a quoted text, which the library writes out
};

}  // namespace

std::string supported_rules(std::string_view rules) { return RuleReader(rules).read(); }

}  // namespace medusa
