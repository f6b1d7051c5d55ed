#include "infer/grammar/regex_syntax.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"

namespace medusa {
namespace {

constexpr int64_t kMostRepeats = 1'000'000;

bool is_ascii_alnum(char c) { return static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0; }
bool is_control(uint32_t code) { return code < 0x20; }

class RegexReader {
 public:
  RegexReader(std::string_view text, RegexPlace place) : text_(text), place_(place) {}

  void read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      switch (c) {
        case '(':
          open();
          break;
        case ')':
          close();
          break;
        case '|':
          begin_alternative();
          break;
        case '^':
          read_begin();
          break;
        case '$':
          read_end();
          break;
        case '*':
        case '+':
        case '?':
          read_quantifier(1);
          break;
        case '{':
          read_quantifier(read_count());
          break;
        case '[':
          read_class();
          break;
        case '\\':
          read_escape(false);
          break;
        default:
          read_literal();
          break;
      }
    }
  }

 private:
  struct Group {
    bool was_at_start;  // of the text, where the group begins
    bool ends = false;  // one of its alternatives ends with $
  };

  [[noreturn]] void refuse(size_t place, std::string_view found,
                           std::string_view what_to_do) const {
    throw UserError(fmt::format(
        "the regular expression has {} at character {}, expected what a grammar can hold; {}",
        found, place + 1, what_to_do));
  }

  std::string shown(size_t from, size_t size) const {
    return fmt::format("{:?}", text_.substr(from, size));
  }

  /// Something that takes up text has come.
  void atom() {
    if (ends_) refuse(at_, "text behind $", "write $ at the end alone");
    at_start_ = false;
    may_repeat_ = true;
  }

  void open() {
    if (text_.substr(at_, 2) == "(?" && text_.substr(at_, 3) != "(?:") {
      const size_t size = text_.substr(at_, 3) == "(?<" ? 4 : 3;
      const bool is_name = size == 4 && at_ + 3 < text_.size() && is_ascii_alnum(text_[at_ + 3]);
      if (!is_name) refuse(at_, shown(at_, size), "leave lookahead, lookbehind and flags out");
      const size_t name_end = text_.find('>', at_);
      if (name_end == std::string_view::npos)
        refuse(at_, "a name without an end", "close it with >");
      if (ends_) atom();
      groups_.push_back({at_start_});
      at_ = name_end + 1;
    } else {
      if (ends_) atom();
      groups_.push_back({at_start_});
      at_ += text_.substr(at_, 3) == "(?:" ? 3 : 1;
    }
    may_repeat_ = false;
  }

  void close() {
    if (groups_.empty()) refuse(at_, "')' without '('", "open the group, or write \\)");
    const Group group = groups_.back();
    groups_.pop_back();
    const bool ends = ends_ || group.ends;
    ends_ = false;
    atom();
    ends_ = ends;
    ++at_;
  }

  void begin_alternative() {
    if (groups_.empty()) {
      at_start_ = true;
    } else {
      at_start_ = groups_.back().was_at_start;
      groups_.back().ends |= ends_;
    }
    ends_ = false;
    may_repeat_ = false;
    ++at_;
  }

  void read_begin() {
    if (!at_start_) refuse(at_, "^ behind text", "write ^ at the beginning alone");
    may_repeat_ = false;
    ++at_;
  }

  void read_end() {
    ends_ = true;
    may_repeat_ = false;
    ++at_;
  }

  void read_quantifier(size_t size) {
    if (!may_repeat_)
      refuse(at_, fmt::format("{} behind nothing that could be repeated", shown(at_, size)),
             "put a group or a character before it");
    at_ += size;
    if (text_.substr(at_, 1) == "?") ++at_;  // lazy: the same texts
    may_repeat_ = false;
  }

  /// The size of a count: {2}, {2,} or {2,3}.
  size_t read_count() const {
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) refuse(at_, "{ without }", "write \\{ for the character");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    const size_t comma = inside.find(',');
    const auto least = number(inside.substr(0, comma));
    const auto most = comma == std::string_view::npos ? least
                      : comma + 1 == inside.size()    ? std::optional(kMostRepeats)
                                                      : number(inside.substr(comma + 1));
    if (!least || !most || *least > *most)
      refuse(at_, shown(at_, end + 1 - at_),
             fmt::format("write counts from 0 to {}, the smaller one first", kMostRepeats));
    return end + 1 - at_;
  }

  static std::optional<int64_t> number(std::string_view digits) {
    int64_t out = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (error != std::errc() || end != digits.data() + digits.size() || out < 0 ||
        out > kMostRepeats)
      return std::nullopt;
    return out;
  }

  void read_class() {
    const size_t begin = at_++;
    const bool negated = text_.substr(at_, 1) == "^";
    if (negated) ++at_;
    if (text_.substr(at_, 1) == "]") refuse(begin, "an empty class", "name a character in it");
    while (at_ < text_.size() && text_[at_] != ']') {
      if (text_[at_] == '\\')
        read_escape(true, negated);
      else
        read_class_character(negated);
    }
    if (at_ == text_.size()) refuse(begin, "[ without ]", "write \\[ for the character");
    ++at_;
    atom();
  }

  void read_class_character(bool negated) {
    if (!negated) expect_writable(static_cast<unsigned char>(text_[at_]), at_);
    ++at_;
  }

  void read_literal() {
    expect_writable(static_cast<unsigned char>(text_[at_]), at_);
    atom();
    ++at_;
  }

  void read_escape(bool in_class, bool negated = false) {
    const size_t begin = at_;
    if (at_ + 1 == text_.size())
      refuse(begin, "an escape without an end", "write \\\\ for the character");
    const char c = text_[at_ + 1];
    at_ += 2;
    std::optional<uint32_t> code;  // of the character that it stands for
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 's':
      case 'S':
        break;
      case 'n':
        code = '\n';
        break;
      case 'r':
        code = '\r';
        break;
      case 't':
        code = '\t';
        break;
      case 'v':
        code = '\v';
        break;
      case 'f':
        code = '\f';
        break;
      case 'x':
        code = hex(2, begin);
        break;
      case 'u':
        code = hex(4, begin);
        break;
      default:
        if (is_ascii_alnum(c))
          refuse(begin, shown(begin, 2), "leave back references, boundaries and other escapes out");
        code = static_cast<unsigned char>(c);
    }
    if (code && !negated) expect_writable(*code, begin);
    if (!in_class) {
      const size_t end = at_;
      at_ = begin;
      atom();
      at_ = end;
    }
  }

  /// The code of so many hexadecimal digits at the current place.
  uint32_t hex(size_t digits, size_t begin) {
    uint32_t code = 0;
    const std::string_view text = text_.substr(at_, digits);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (text.size() != digits || error != std::errc() || end != text.data() + digits ||
        is_surrogate)
      refuse(begin, shown(begin, 2 + text.size()),
             "write \\xHH or \\uHHHH, or the character itself");
    at_ += digits;
    return code;
  }

  /// The library writes a pattern's characters as they are, and JSON would have them escaped.
  void expect_writable(uint32_t code, size_t place) const {
    if (place_ == RegexPlace::JsonString && (code == '"' || code == '\\' || is_control(code)))
      refuse(place, "a character that JSON escapes (a quote, backslash or control character)",
             "use a class that leaves characters out, such as [^a-z]");
  }

  std::string_view text_;
  RegexPlace place_;
  size_t at_ = 0;
  bool at_start_ = true;     // nothing before takes up text
  bool ends_ = false;        // $ has come in this alternative
  bool may_repeat_ = false;  // what came last
  std::vector<Group> groups_;
};

}  // namespace

void expect_supported_regex(std::string_view expression, RegexPlace place) {
  RegexReader(expression, place).read();
}

}  // namespace medusa
