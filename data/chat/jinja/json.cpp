#include "data/chat/jinja/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/operators.h"
#include "data/chat/jinja/print.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Heap& heap) : style_(style), heap_(heap) {}

  void write(const Value& value) {
    const Descent descent(heap_);
    heap_.step();
    heap_.check_room(1, out_.size());
    if (const Text* text = as_text(value); text && text->is_number)
      out_ += text->utf8;
    else if (text)
      write_text(text->utf8);
    else if (const Dict* dict = as_dict(value))
      write_dict(*dict);
    else if (const Sequence* sequence = as_sequence(value))
      write_sequence(*sequence);
    else
      out_ += scalar(value);
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& value) {
    if (is_none(value)) return "null";
    if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
    if (const auto i = as_int(value)) return fmt::format("{}", *i);
    const auto* d = std::get_if<double>(&value);
    if (!d)
      throw Error(fmt::format("{} is given to tojson", describe(value)),
                  "a list, a dict, a text or a number");
    if (std::isnan(*d)) return "NaN";
    if (std::isinf(*d)) return *d < 0 ? "-Infinity" : "Infinity";
    return print_float(*d);
  }

  void write_text(std::string_view text) {
    heap_.scan(text.size());
    out_ += '"';
    while (!text.empty()) {
      const Utf8Step step = read_utf8(text);
      write_character(step.codepoint, text.substr(0, step.size));
      text.remove_prefix(step.size);
    }
    out_ += '"';
  }

  void write_character(uint32_t c, std::string_view bytes) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
    constexpr std::string_view kLetters = "\"\\nrtbf";
    if (const size_t at = c < 0x80 ? kEscaped.find(bytes[0]) : std::string_view::npos;
        at != std::string_view::npos)
      out_ += {'\\', kLetters[at]};
    else if (c >= 0x20 && (c < 0x7F || !style_.ascii))
      out_ += bytes;
    else if (c < 0x10000)
      out_ += fmt::format("\\u{:04x}", c);
    else
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10),
                          0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  void break_line() {
    if (!style_.indent) return;
    heap_.check_room(static_cast<size_t>(level_) + 1, style_.indent->size() + 1);
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  /// Opens, writes num items with separators, closes.
  template <typename WriteItem>
  void write_items(char open, char close, size_t num, const WriteItem& write_item) {
    out_ += open;
    if (num > 0) {
      ++level_;
      for (size_t i = 0; i < num; ++i) {
        if (i > 0) out_ += style_.item_separator;
        break_line();
        write_item(i);
      }
      --level_;
      break_line();
    }
    out_ += close;
  }

  void write_sequence(const Sequence& sequence) {
    if (sequence.kind != Sequence::Kind::List && sequence.kind != Sequence::Kind::Tuple)
      throw Error(fmt::format("a {} is given to tojson", type_name(&sequence)),
                  "a list: add the filter 'list'");
    write_items('[', ']', sequence.items.size(), [&](size_t i) { write(sequence.items[i]); });
  }

  void write_dict(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return less(a->first, b->first, heap_);
      });
    write_items('{', '}', entries.size(), [&](size_t i) {
      const Text* key = as_text(entries[i]->first);
      write_text(key ? key->utf8 : scalar(entries[i]->first));
      out_ += style_.key_separator;
      write(entries[i]->second);
    });
  }

  const JsonStyle& style_;
  Heap& heap_;
  std::string out_;
  int level_ = 0;
};

class JsonReader : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  explicit JsonReader(Heap& heap) : heap_(heap) {}

  Value take() { return open_.front().items.front(); }

  bool null() override { return add(None{}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return add(static_cast<int64_t>(value));
    return add(heap_.large_integer(fmt::format("{}", value)));
  }
  bool number_float(number_float_t value, const string_t& written) override {
    if (written.find_first_of(".eE") == string_t::npos) return add(heap_.large_integer(written));
    return add(value);
  }
  bool string(string_t& value) override { return add(heap_.text(std::move(value))); }
  bool binary(binary_t&) override { return false; }  // not in JSON
  bool start_object(size_t) override { return open(); }
  bool key(string_t& name) override {
    open_.back().keys.push_back(heap_.text(std::move(name)));
    return true;
  }
  bool end_object() override {
    const Level level = close();
    std::vector<std::pair<Value, Value>> entries;
    for (size_t i = 0; i < level.keys.size(); ++i)
      entries.emplace_back(level.keys[i], level.items[i]);
    return add(heap_.dict(entries));
  }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return add(heap_.list(close().items)); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Level {
    std::vector<Value> keys, items;
  };

  bool open() {
    open_.emplace_back();
    return true;
  }
  Level close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    return level;
  }
  bool add(const Value& value) {
    heap_.step();
    open_.back().items.push_back(value);
    return true;
  }

  Heap& heap_;
  std::vector<Level> open_{{}};  // the first one holds the whole
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style, Heap& heap) {
  JsonWriter writer(style, heap);
  writer.write(value);
  return writer.take();
}

Value from_json(std::string_view text, Heap& heap) {
  JsonReader reader(heap);
  const bool is_json = nlohmann::ordered_json::sax_parse(text, &reader);
  MEDUSA_ASSERT(is_json);
  return reader.take();
}

}  // namespace medusa::jinja
