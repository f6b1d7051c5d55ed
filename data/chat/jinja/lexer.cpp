#include "data/chat/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/unicode.h"

namespace medusa::jinja {
namespace {

using Kind = Lexeme::Kind;

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return begins_name(c) || is_ascii_digit(c); }

/// With \n for every line end, and without one at the end.
std::string normalize(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r')
      out += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      out += '\n';
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

/// What one letter behind a backslash means; 0: nothing.
char simple_escape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return letter;
    default:
      return 0;
  }
}

/// Number of hexadecimal digits behind \x, \u and \U; 0: another letter.
size_t num_hex_digits(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// Appends the character that the digits at the start of rest write, and drops them.
void take_codepoint(std::string& out, std::string_view& rest, size_t num_digits, int base,
                    int line) {
  uint32_t codepoint = 0;
  const char* end = rest.data() + std::min(num_digits, rest.size());
  const auto read = std::from_chars(rest.data(), end, codepoint, base);
  if (read.ec != std::errc() || (base == 16 && read.ptr != rest.data() + num_digits) ||
      codepoint > 0x10FFFF)
    throw Error("an escape in a string is cut short or beyond Unicode",
                fmt::format("{} digits", num_digits), line);
  append_character(out, codepoint);
  rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
}

/// Undoes the escapes of a string in Jinja source.
/// @param body  what stands between the quotes.
/// @returns     as Python reads it: \n, \x41, \u00e9, \101, …; an unknown escape stays as it is.
/// @throws Error  an escape with digits missing, or \N{…}, which needs Unicode's list of names.
std::string unescape(std::string_view body, int line) {
  std::string out;
  while (!body.empty()) {
    const char first = body[0];
    body.remove_prefix(1);
    if (first != '\\' || body.empty()) {
      out += first;
      continue;
    }
    const char letter = body[0];
    if (letter == 'N') throw Error("the escape \\N in a string", "the character itself", line);
    if (is_octal(letter)) {
      size_t digits = 1;
      while (digits < 3 && digits < body.size() && is_octal(body[digits])) ++digits;
      take_codepoint(out, body, digits, 8, line);
      continue;
    }
    body.remove_prefix(1);
    if (const size_t digits = num_hex_digits(letter))
      take_codepoint(out, body, digits, 16, line);
    else if (const char meant = simple_escape(letter))
      out += meant;
    else if (letter != '\n')  // a backslash at the end of a line joins it with the next
      out.append({'\\', letter});
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize(source)), rest_(source_) {}

  std::vector<Lexeme> run() {
    while (!rest_.empty()) lex_data();
    add(Kind::End, "");
    return std::move(lexemes_);
  }

 private:
  void add(Kind kind, std::string text) { lexemes_.push_back({kind, std::move(text), line_}); }

  void skip(size_t bytes) {
    line_ +=
        static_cast<int>(std::count(rest_.begin(), rest_.begin() + static_cast<long>(bytes), '\n'));
    line_starts_ = bytes > 0 ? rest_[bytes - 1] == '\n' : line_starts_;
    rest_.remove_prefix(bytes);
  }

  void skip_space() { skip(rest_.size() - strip(rest_, std::nullopt, Side::Left).size()); }

  /// Text up to the next tag, and that tag.
  void lex_data() {
    const size_t at = find_tag();
    if (at == std::string_view::npos) return add_data(rest_.size(), rest_);
    const char tag = rest_[at + 1];
    const char sign = at + 2 < rest_.size() ? rest_[at + 2] : '\0';
    add_data(at, trim_before_tag(rest_.substr(0, at), tag, sign));
    const size_t begin = sign == '-' || sign == '+' ? 3 : 2;
    if (tag == '#') return skip_comment(begin);
    if (tag == '%' && lex_raw()) return;
    add(tag == '{' ? Kind::PrintBegin : Kind::BlockBegin, "");
    skip(begin);
    lex_tag(tag == '{' ? "}}" : "%}");
  }

  size_t find_tag() const {
    size_t at = rest_.find('{');
    while (at != std::string_view::npos && (at + 1 == rest_.size() || !is_tag(rest_[at + 1])))
      at = rest_.find('{', at + 1);
    return at;
  }

  static bool is_tag(char c) { return c == '{' || c == '%' || c == '#'; }

  void add_data(size_t bytes, std::string_view kept) {
    if (!kept.empty()) add(Kind::Data, std::string(kept));
    skip(bytes);
  }

  /// "-" drops all white space before a tag; else a block or comment that is the first thing on its
  /// line drops its indent (lstrip_blocks), if no "+" forbids it.
  std::string_view trim_before_tag(std::string_view text, char tag, char sign) const {
    if (sign == '-') return strip(text, std::nullopt, Side::Right);
    if (sign == '+' || tag == '{') return text;
    const size_t line_end = text.rfind('\n');
    const size_t indent = line_end == std::string_view::npos ? 0 : line_end + 1;
    if (indent == 0 && !line_starts_) return text;
    const bool blank = strip(text.substr(indent), std::nullopt, Side::Left).empty();
    return blank ? text.substr(0, indent) : text;
  }

  /// What ends a tag at the start of rest_, with its sign; 0: no end here.
  size_t end_of_tag(std::string_view end) const {
    const bool sign = rest_.starts_with('-') || (rest_.starts_with('+') && end != "}}");
    return rest_.substr(sign ? 1 : 0).starts_with(end) ? end.size() + (sign ? 1 : 0) : 0;
  }

  /// Past the end of a tag and the white space it drops: all after "-", one line end after a block
  /// or comment (trim_blocks), none after "+".
  void skip_end_of_tag(size_t size, std::string_view end) {
    const char sign = rest_[0];
    skip(size);
    if (sign == '-')
      skip_space();
    else if (sign != '+' && end != "}}" && rest_.starts_with('\n'))
      skip(1);
  }

  void skip_comment(size_t begin) {
    const int line = line_;
    skip(begin);
    while (!rest_.empty()) {
      if (const size_t end = end_of_tag("#}")) return skip_end_of_tag(end, "#}");
      skip(1);
    }
    throw Error("a comment that does not end", "'#}'", line);
  }

  /// The block tag at the start of text, if it holds only this name; returns its bytes, or 0.
  static size_t lone_tag(std::string_view text, std::string_view name, char* end_sign) {
    const std::string_view whole = text;
    text.remove_prefix(2);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    text = strip(text, std::nullopt, Side::Left);
    if (!text.starts_with(name)) return 0;
    text = strip(text.substr(name.size()), std::nullopt, Side::Left);
    *end_sign = text.empty() ? '\0' : text[0];
    if (*end_sign == '-' || (*end_sign == '+' && name != "raw")) text.remove_prefix(1);
    if (!text.starts_with("%}")) return 0;
    return whole.size() - text.size() + 2;
  }

  /// {% raw %} … {% endraw %}, if it stands at the start of rest_.
  bool lex_raw() {
    char end_sign = 0;
    const size_t opening = lone_tag(rest_, "raw", &end_sign);
    if (opening == 0) return false;
    const int line = line_;
    skip(opening);
    if (end_sign == '-') skip_space();
    for (size_t at = rest_.find("{%"); at != std::string_view::npos;
         at = rest_.find("{%", at + 1)) {
      const size_t closing = lone_tag(rest_.substr(at), "endraw", &end_sign);
      if (closing == 0) continue;
      add_data(at, trim_before_tag(rest_.substr(0, at), '%', rest_[at + 2]));
      skip(closing);
      if (end_sign == '-')
        skip_space();
      else if (end_sign != '+' && rest_.starts_with('\n'))
        skip(1);
      return true;
    }
    throw Error("a raw block that does not end", "{% endraw %}", line);
  }

  void lex_tag(std::string_view end) {
    const int line = line_;
    std::string open;  // the closing brackets that are due, innermost last
    while (!rest_.empty()) {
      if (const size_t size = open.empty() ? end_of_tag(end) : 0) {
        add(end == "}}" ? Kind::PrintEnd : Kind::BlockEnd, "");
        return skip_end_of_tag(size, end);
      }
      if (is_python_space(read_utf8(rest_).codepoint))
        skip_space();
      else if (is_ascii_digit(rest_[0]))
        lex_number();
      else if (begins_name(rest_[0]))
        lex_name();
      else if (rest_[0] == '\'' || rest_[0] == '"')
        lex_string();
      else
        lex_operator(open);
    }
    throw Error("a tag that does not end", fmt::format("'{}'", end), line);
  }

  void lex_name() {
    size_t size = 1;
    while (size < rest_.size() && continues_name(rest_[size])) ++size;
    add(Kind::Name, std::string(rest_.substr(0, size)));
    skip(size);
  }

  /// Bytes of digits at position at, underscores between them included.
  size_t digits(size_t at) const {
    size_t end = at;
    while (end < rest_.size() && (is_ascii_digit(rest_[end]) ||
                                  (rest_[end] == '_' && end > at && end + 1 < rest_.size() &&
                                   is_ascii_digit(rest_[end + 1]))))
      ++end;
    return end - at;
  }

  void lex_number() {
    size_t size = digits(0);
    Kind kind = Kind::Integer;
    if (size == 1 && rest_[0] == '0' && rest_.size() > 2 &&
        std::string_view("xXoObB").find(rest_[1]) != std::string_view::npos) {
      size = 2;
      while (size < rest_.size() && (continues_name(rest_[size]))) ++size;
    } else {
      const bool behind_dot = !lexemes_.empty() && lexemes_.back().is(Kind::Operator, ".");
      const auto at = [&](size_t i) { return i < rest_.size() ? rest_[i] : '\0'; };
      if (!behind_dot && at(size) == '.' && is_ascii_digit(at(size + 1))) {
        kind = Kind::Float;
        size += 1 + digits(size + 1);
      }
      const size_t sign = at(size + 1) == '+' || at(size + 1) == '-' ? 1 : 0;
      if (!behind_dot && (at(size) == 'e' || at(size) == 'E') &&
          is_ascii_digit(at(size + 1 + sign))) {
        kind = Kind::Float;
        size += 1 + sign + digits(size + 1 + sign);
      }
    }
    std::string text(rest_.substr(0, size));
    std::erase(text, '_');
    add(kind, std::move(text));
    skip(size);
  }

  void lex_string() {
    const char quote = rest_[0];
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) throw Error("a string that does not end", "its closing quote", line_);
    add(Kind::String, unescape(rest_.substr(1, end - 1), line_));
    skip(end + 1);
  }

  void lex_operator(std::string& open) {
    constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view each : kDouble)
      if (rest_.starts_with(each)) {
        add(Kind::Operator, std::string(each));
        return skip(2);
      }
    const char c = rest_[0];
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos)
      throw Error(
          fmt::format("the character '{}' in a tag", rest_.substr(0, read_utf8(rest_).size)),
          "an expression", line_);
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        throw Error(
            fmt::format("an unexpected '{}'", c),
            open.empty() ? "its opening bracket before it" : fmt::format("'{}'", open.back()),
            line_);
      open.pop_back();
    }
    add(Kind::Operator, std::string(1, c));
    skip(1);
  }

  const std::string source_;
  std::string_view rest_;
  std::vector<Lexeme> lexemes_;
  int line_ = 1;
  bool line_starts_ = true;  // what was read last ended a line, or nothing was read yet
};

}  // namespace

std::vector<Lexeme> lex(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Lexeme& lexeme) {
  switch (lexeme.kind) {
    case Kind::PrintBegin:
      return "'{{'";
    case Kind::PrintEnd:
      return "'}}'";
    case Kind::BlockBegin:
      return "'{%'";
    case Kind::BlockEnd:
      return "'%}'";
    case Kind::End:
      return "the end of the template";
    case Kind::Data:
      return "text";
    case Kind::String:
      return "a string";
    default:
      return fmt::format("'{}'", lexeme.text);
  }
}

}  // namespace medusa::jinja
