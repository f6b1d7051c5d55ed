#include "data/chat/jinja/print.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/unicode.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {
namespace {

/// Without white space around it and the underscores between its digits.
std::string digits_of(std::string_view text) {
  const std::string_view stripped = strip(text, std::nullopt, Side::Both);
  std::string out;
  for (size_t i = 0; i < stripped.size(); ++i) {
    const bool between = i > 0 && i + 1 < stripped.size() && std::isdigit(stripped[i - 1]) &&
                         std::isdigit(stripped[i + 1]);
    if (stripped[i] != '_' || !between) out += stripped[i];
  }
  if (out.starts_with('+') && !out.starts_with("+-")) out.erase(0, 1);
  return out;
}

class Printer {
 public:
  explicit Printer(Heap& heap) : heap_(heap) {}

  void print(const Value& value) {
    const Descent descent(heap_);
    heap_.step();
    heap_.check_room(1, out_.size());
    if (is_none(value)) {
      out_ += "None";
    } else if (is_undefined(value)) {
      out_ += "Undefined";
    } else if (const auto* b = std::get_if<bool>(&value)) {
      out_ += *b ? "True" : "False";
    } else if (const auto* i = std::get_if<int64_t>(&value)) {
      out_ += fmt::format("{}", *i);
    } else if (const auto* d = std::get_if<double>(&value)) {
      out_ += print_float(*d);
    } else if (const Text* text = as_text(value)) {
      heap_.scan(text->utf8.size());
      if (text->is_number)
        out_ += text->utf8;
      else
        text->is_markup ? print_markup(text->utf8) : quote(text->utf8);
    } else if (const Dict* dict = as_dict(value)) {
      print_dict(*dict);
    } else if (const Sequence* sequence = as_sequence(value)) {
      print_sequence(*sequence);
    } else {
      throw Error(fmt::format("{} is printed", describe(value)), "a text or a number");
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void print_markup(const std::string& text) {
    out_ += "Markup(";
    quote(text);
    out_ += ")";
  }

  void quote(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const char mark = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
    out_ += mark;
    while (!text.empty()) {
      const Utf8Step step = read_utf8(text);
      const uint32_t c = step.codepoint;
      if (c == static_cast<uint32_t>(mark) || c == '\\')
        out_ += {'\\', text[0]};
      else if (c == '\n' || c == '\r' || c == '\t')
        out_ += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
      else if (is_printable(c))
        out_ += text.substr(0, step.size);
      else
        out_ += c < 0x100     ? fmt::format("\\x{:02x}", c)
                : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                              : fmt::format("\\U{:08x}", c);
      text.remove_prefix(step.size);
    }
    out_ += mark;
  }

  void print_dict(const Dict& dict) {
    out_ += "{";
    bool first = true;
    for (const auto& [key, value] : dict.entries) {
      if (!first) out_ += ", ";
      first = false;
      print(key);
      out_ += ": ";
      print(value);
    }
    out_ += "}";
  }

  void print_sequence(const Sequence& sequence) {
    const bool tuple = sequence.kind == Sequence::Kind::Tuple;
    if (!tuple && sequence.kind != Sequence::Kind::List)
      throw Error(fmt::format("a {} is printed", type_name(&sequence)),
                  "a list: add the filter 'list'");
    out_ += tuple ? "(" : "[";
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!first) out_ += ", ";
      first = false;
      print(item);
    }
    if (tuple && sequence.items.size() == 1) out_ += ",";
    out_ += tuple ? ")" : "]";
  }

  Heap& heap_;
  std::string out_;
};

}  // namespace

std::string print_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::optional<double> parse_float(std::string_view text) {
  const std::string digits = digits_of(text);
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end ||
      digits.find('(') != std::string::npos)  // from_chars takes "nan(…)", Python does not
    return std::nullopt;
  return number;
}

std::optional<int64_t> parse_int(std::string_view text) {
  const std::string digits = digits_of(text);
  int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::string print(const Value& value, Heap& heap) {
  if (const Text* text = as_text(value)) return text->utf8;
  if (is_undefined(value)) return "";
  return print_quoted(value, heap);
}

std::string print_quoted(const Value& value, Heap& heap) {
  Printer printer(heap);
  printer.print(value);
  return printer.take();
}

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace medusa::jinja
