#include "infer/grammar/regex_syntax.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/utf8.h"
#include "infer/grammar/code_points.h"
#include "infer/grammar/counts.h"

namespace medusa {
namespace {

constexpr int64_t kMostRepeats = 1'000'000;

bool is_ascii_alnum(char c) { return static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0; }

/// Reads an expression, and writes the same one without large counts, for strings of JSON if asked
/// to.
class RegexReader {
 public:
  RegexReader(std::string_view text, bool in_json, const SchemaTime& time)
      : text_(text), in_json_(in_json), time_(time) {}

  std::string read() {
    while (at_ < text_.size()) {
      time_.check();
      read_next();
    }
    if (!groups_.empty()) refuse(text_.size() - 1, "'(' without ')'", "close the group");
    return out_;
  }

 private:
  struct Group {
    bool was_at_start;  // of the text, where the group begins
    size_t written_at;  // where in out_ it begins
    bool ends = false;  // one of its alternatives ends with $
  };

  /// What a character or an escape stands for.
  struct Item {
    CodePoints codes;
    std::optional<uint32_t> code;  // of the only one

    static Item one(uint32_t code) { return {CodePoints{{code, code}}, code}; }
  };

  [[noreturn]] static void refuse(size_t place, std::string_view found,
                                  std::string_view what_to_do) {
    throw UnsupportedRegex(fmt::format(
        "the regular expression has {} at character {}, expected what a grammar can hold; {}",
        found, place + 1, what_to_do));
  }

  std::string shown(size_t from, size_t size) const {
    return fmt::format("{:?}", text_.substr(from, size));
  }

  void read_next() {
    switch (text_[at_]) {
      case '(':
        return open();
      case ')':
        return close();
      case '|':
        return begin_alternative();
      case '^':
        return read_begin();
      case '$':
        return read_end();
      case '*':
      case '+':
      case '?':
        return read_quantifier();
      case '{':
        return read_count();
      case '[':
        return read_class();
      case '.':
        return read_any();
      default:
        return read_character();
    }
  }

  /// Something that takes up text has come. @param begin  of it in out_, if it has begun there.
  void atom(std::string_view written, std::optional<size_t> begin = {}) {
    if (ends_) refuse(at_, "text behind $", "write $ at the end alone");
    at_start_ = false;
    may_repeat_ = true;
    atom_at_ = begin.value_or(out_.size());
    out_ += written;
  }

  /// @param place  where the text says it, up to where it is read.
  void atom(const CodePoints& codes, size_t place) {
    const std::string_view read = text_.substr(place, at_ - place);
    const bool stands_for_itself = read.find_first_of("\\[.") == std::string_view::npos;
    if (!in_json_ && stands_for_itself) return atom(read);
    const CodePoints written = codes.without(in_json_ ? escaped_in_json() : surrogates());
    if (written.empty())
      refuse(place,
             in_json_
                 ? "nothing but characters that JSON escapes (quote, backslash, control characters)"
                 : "no character",
             "use a class that holds others, too");
    atom(written.to_class());
  }

  void open() {
    if (ends_) refuse(at_, "text behind $", "write $ at the end alone");
    const size_t begin = at_;
    ++at_;
    if (text_.substr(begin, 3) == "(?:") {
      at_ = begin + 3;
    } else if (text_.substr(begin, 3) == "(?<" && begin + 3 < text_.size() &&
               is_ascii_alnum(text_[begin + 3])) {
      const size_t name_end = text_.find('>', begin);
      if (name_end == std::string_view::npos) refuse(begin, "a name without an end", "add >");
      at_ = name_end + 1;
    } else if (text_.substr(begin, 2) == "(?") {
      refuse(begin, shown(begin, text_.substr(begin, 3) == "(?<" ? 4 : 3),
             "leave lookahead, lookbehind and flags out");
    }
    groups_.push_back({at_start_, out_.size()});
    may_repeat_ = false;
    out_ += '(';
  }

  void close() {
    if (groups_.empty()) refuse(at_, "')' without '('", "open the group, or write \\)");
    const bool ends = ends_ || groups_.back().ends;
    const size_t written_at = groups_.back().written_at;
    groups_.pop_back();
    ends_ = false;
    atom(")", written_at);
    ends_ = ends;
    ++at_;
  }

  void begin_alternative() {
    at_start_ = groups_.empty() || groups_.back().was_at_start;
    if (!groups_.empty()) groups_.back().ends |= ends_;
    ends_ = false;
    may_repeat_ = false;
    out_ += '|';
    ++at_;
  }

  // Texts are matched as a whole: the anchors say nothing more, and are not written.
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

  void read_quantifier() {
    expect_atom(1);
    out_ += text_[at_];
    end_quantifier(1);
  }

  /// {2}, {2,} or {2,3}.
  void read_count() {
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) refuse(at_, "{ without }", "write \\{ for the character");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    const size_t size = end + 1 - at_, comma = inside.find(',');
    const bool is_open = comma != std::string_view::npos && comma + 1 == inside.size();
    const auto least = number(inside.substr(0, comma));
    auto most = least;
    if (comma != std::string_view::npos && !is_open) most = number(inside.substr(comma + 1));
    if (!least || !most || *least > *most)
      refuse(at_, shown(at_, size),
             fmt::format("write counts from 0 to {}, the smaller one first", kMostRepeats));
    expect_atom(size);
    const std::string item = out_.substr(atom_at_);
    out_.resize(atom_at_);
    out_ += counted(item, *least, is_open ? std::nullopt : most);
    if (out_.size() > kMostCountedBytes)
      refuse(at_, fmt::format("{} around others like it", shown(at_, size)),
             "put fewer large counts into each other");
    end_quantifier(size);
  }

  void expect_atom(size_t size) {
    if (!may_repeat_)
      refuse(at_, fmt::format("{} behind nothing that could be repeated", shown(at_, size)),
             "put a group or a character before it");
  }

  void end_quantifier(size_t size) {
    at_ += size;
    if (text_.substr(at_, 1) == "?") ++at_;  // lazy: the same texts
    may_repeat_ = false;
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
    CodePoints codes;
    if (text_.substr(at_, 1) == "]") refuse(begin, "an empty class", "name a character in it");
    while (at_ < text_.size() && text_[at_] != ']') add_item(codes);
    if (at_ == text_.size()) refuse(begin, "[ without ]", "write \\[ for the character");
    ++at_;
    atom(negated ? codes.complement() : codes, begin);
  }

  /// A character, an escape, or a range.
  void add_item(CodePoints& codes) {
    const size_t begin = at_;
    const Item first = next_item();
    const bool is_range = at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']';
    if (!first.code || !is_range) return codes.add(first.codes);
    ++at_;
    const Item last = next_item();
    if (!last.code || *last.code < *first.code)
      refuse(begin, shown(begin, at_ - begin),
             "write a range from a smaller to a larger character");
    codes.add(*first.code, *last.code);
  }

  Item next_item() {
    if (text_[at_] == '\\') return next_escape();
    const Utf8Step step = read_utf8(text_.substr(at_));
    at_ += step.size;
    return Item::one(step.codepoint);
  }

  void read_any() {
    ++at_;
    atom(CodePoints{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.complement(), at_ - 1);
  }

  void read_character() {
    const size_t begin = at_;
    const Item item = next_item();
    if (in_json_ && item.code && *item.code < 0x80 && is_ascii_alnum(static_cast<char>(*item.code)))
      atom(std::string(1, static_cast<char>(*item.code)));
    else
      atom(item.codes, begin);
  }

  Item next_escape() {
    const size_t begin = at_;
    if (at_ + 1 == text_.size())
      refuse(begin, "an escape without an end", "write \\\\ for the character");
    const char c = text_[at_ + 1];
    at_ += 2;
    switch (c) {
      case 'd':
        return {digits(), {}};
      case 'D':
        return {digits().complement(), {}};
      case 'w':
        return {word_characters(), {}};
      case 'W':
        return {word_characters().complement(), {}};
      case 's':
        return {white_space(), {}};
      case 'S':
        return {white_space().complement(), {}};
      case 'n':
        return Item::one('\n');
      case 'r':
        return Item::one('\r');
      case 't':
        return Item::one('\t');
      case 'v':
        return Item::one('\v');
      case 'f':
        return Item::one('\f');
      case 'x':
        return Item::one(hex(2, begin));
      case 'u':
        return Item::one(hex(4, begin));
      default:
        break;
    }
    if (is_ascii_alnum(c))
      refuse(begin, shown(begin, 2), "leave back references, boundaries and other escapes out");
    --at_;  // the character itself, which may have several bytes
    const Utf8Step step = read_utf8(text_.substr(at_));
    at_ += step.size;
    return Item::one(step.codepoint);
  }

  /// The code of so many hexadecimal digits at the current place.
  uint32_t hex(size_t num_digits, size_t begin) {
    uint32_t code = 0;
    const std::string_view text = text_.substr(at_, num_digits);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (text.size() != num_digits || error != std::errc() || end != text.data() + num_digits ||
        is_surrogate)
      refuse(begin, shown(begin, 2 + text.size()),
             "write \\xHH or \\uHHHH, or the character itself");
    at_ += num_digits;
    return code;
  }

  std::string_view text_;
  bool in_json_;
  const SchemaTime& time_;
  size_t at_ = 0;
  bool at_start_ = true;     // nothing before takes up text
  bool ends_ = false;        // $ has come in this alternative
  bool may_repeat_ = false;  // what came last
  size_t atom_at_ = 0;       // where in out_ that begins
  std::vector<Group> groups_;
  std::string out_;
};

}  // namespace

std::string supported_regex(std::string_view expression) {
  return RegexReader(expression, false, SchemaTime()).read();
}

std::string regex_of_json_string(std::string_view expression, const SchemaTime& time) {
  // The library leaves expressions with other characters than ASCII's to its rules.
  constexpr std::string_view kNoAutomaton = "é{0}";
  return fmt::format("{}({})", kNoAutomaton, RegexReader(expression, true, time).read());
}

}  // namespace medusa
