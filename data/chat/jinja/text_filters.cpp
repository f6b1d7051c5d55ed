// Filters that take or give text.
#include <fmt/format.h>

#include "data/chat/jinja/access.h"
#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/json.h"
#include "data/chat/jinja/parameters.h"
#include "data/chat/jinja/print.h"
#include "data/chat/jinja/unicode.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {
namespace {

/// The input as text: markup stays markup, everything else is printed.
Text soft_text(const Value& input, Heap& heap) {
  const Text* text = as_text(input);
  return {print(input, heap), text && text->is_markup};
}

template <std::string (*change)(std::string_view)>
Value change_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("a filter of text", arguments, {});
  const Text text = soft_text(input, heap);
  return heap.text(change(text.utf8), text.is_markup);
}

Value title_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("title", arguments, {});
  return heap.text(title_words(print(input, heap)));  // plain, even of markup
}

Value string_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("string", arguments, {});
  const Text text = soft_text(input, heap);
  return heap.text(text.utf8, text.is_markup);
}

Value trim_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("trim", arguments, {"chars"});
  const Text text = soft_text(input, heap);
  return heap.text(std::string(strip(text.utf8, given.text(0), Side::Both)), text.is_markup);
}

Value safe_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("safe", arguments, {});
  return heap.text(print(input, heap), true);
}

Value escape_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("escape", arguments, {});
  const Text text = soft_text(input, heap);
  heap.check_room(6, text.utf8.size());
  return heap.text(text.is_markup ? text.utf8 : escape_html(text.utf8), true);
}

Value replace_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("replace", arguments, {"old", "new", "count"});
  return heap.text(replace(print(input, heap), print(given.need(0), heap),
                           print(given.need(1), heap), given.integer(2, -1), heap));
}

Value join_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("join", arguments, {"d", "attribute"});
  const std::string separator = given.find(0) ? print(*given.find(0), heap) : "";
  const bool by_attribute = given.find(1) && !is_none(*given.find(1));
  std::string out;
  bool first = true;
  for (const Value& item : iterate(input, heap)) {
    heap.step();
    const std::string text = print(by_attribute ? follow(item, *given.find(1), heap) : item, heap);
    heap.check_room(1, out.size() + separator.size() + text.size());
    if (!first) out += separator;
    first = false;
    out += text;
  }
  return heap.text(std::move(out));
}

Value indent_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("indent", arguments, {"width", "first", "blank"});
  const Text* text = as_text(input);
  if (!text) throw Error(fmt::format("{} is indented", describe(input)), "a text");
  std::string indent;
  if (const Value* width = given.find(0); width && as_text(*width)) {
    indent = as_text(*width)->utf8;
  } else {
    const auto spaces = static_cast<size_t>(std::max<int64_t>(given.integer(0, 4), 0));
    heap.check_room(1, spaces);
    indent.assign(spaces, ' ');
  }
  const bool blank = given.flag(2, false);
  heap.check_room(text->utf8.size() + 1, sizeof(std::string_view));
  std::string out = given.flag(1, false) ? indent : "";
  const std::string ended = text->utf8 + "\n";  // else a last empty line would be lost
  bool is_first = true;
  for (const std::string_view line : split_lines(ended, false)) {
    heap.check_room(1, out.size() + indent.size() + line.size() + 1);
    if (!is_first) {
      out += '\n';
      if (blank || !line.empty()) out += indent;
    }
    is_first = false;
    out += line;
  }
  return heap.text(std::move(out), text->is_markup);
}

Value tojson_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("tojson", arguments,
                         {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = given.flag(0, false);
  if (const Value* indent = given.find(1); indent && !is_none(*indent)) {
    const auto spaces = as_text(*indent)
                            ? size_t{0}
                            : static_cast<size_t>(std::max<int64_t>(given.integer(1, 0), 0));
    heap.check_room(1, spaces);
    style.indent = as_text(*indent) ? as_text(*indent)->utf8 : std::string(spaces, ' ');
    style.item_separator = std::string(1, ',');  // a literal makes g++ 12 warn falsely
  }
  if (const Value* separators = given.find(2); separators && !is_none(*separators)) {
    const auto pair = iterate(*separators, heap);
    if (pair.size() != 2 || !as_text(pair[0]) || !as_text(pair[1]))
      throw Error("other separators of tojson", "two texts");
    style.item_separator = as_text(pair[0])->utf8;
    style.key_separator = as_text(pair[1])->utf8;
  }
  style.sort_keys = given.flag(3, false);
  return heap.text(to_json(input, style, heap));
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable filters = {
      {"capitalize", change_filter<capitalize>},
      {"e", escape_filter},
      {"escape", escape_filter},
      {"indent", indent_filter},
      {"join", join_filter},
      {"lower", change_filter<lower>},
      {"replace", replace_filter},
      {"safe", safe_filter},
      {"string", string_filter},
      {"title", title_filter},
      {"tojson", tojson_filter},
      {"trim", trim_filter},
      {"upper", change_filter<upper>},
  };
  return filters;
}

}  // namespace medusa::jinja
