#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "data/chat/jinja/access.h"
#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/operators.h"
#include "data/chat/jinja/parameters.h"
#include "data/chat/jinja/print.h"
#include "data/chat/jinja/unicode.h"

namespace medusa::jinja {
namespace {

/// Python's methods of str. What they make of markup is markup.
using TextMethod = Value (*)(const Text& self, const Arguments& arguments, Heap& heap);

Value like(const Text& self, std::string_view text, Heap& heap) {
  return heap.text(std::string(text), self.is_markup);
}

Value list_like(const Text& self, const std::vector<std::string_view>& parts, Heap& heap) {
  heap.check_room(parts.size(), sizeof(Text));
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(like(self, part, heap));
  return heap.list(std::move(items));
}

template <Side side>
Value strip_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("strip", arguments, {"chars"});
  return like(self, strip(self.utf8, given.text(0), side), heap);
}

template <bool from_right>
Value split_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("split", arguments, {"sep", "maxsplit"});
  const auto separator = given.text(0);
  if (separator && separator->empty()) throw Error("split at an empty text", "a separator");
  heap.check_room(self.utf8.size(), sizeof(std::string_view));
  return list_like(self, split(self.utf8, separator, given.integer(1, -1), from_right), heap);
}

Value splitlines_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("splitlines", arguments, {"keepends"});
  heap.check_room(self.utf8.size(), sizeof(std::string_view));
  return list_like(self, split_lines(self.utf8, given.flag(0, false)), heap);
}

template <bool from_right>
Value partition_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("partition", arguments, {"sep"});
  const std::string_view separator = given.need_text(0);
  if (separator.empty()) throw Error("partition at an empty text", "a separator");
  const std::string_view text = self.utf8;
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  std::string_view parts[] = {text, "", ""};
  if (at != std::string_view::npos) {
    parts[0] = text.substr(0, at);
    parts[1] = separator;
    parts[2] = text.substr(at + separator.size());
  } else if (from_right) {
    std::swap(parts[0], parts[2]);
  }
  return heap.tuple(
      {like(self, parts[0], heap), like(self, parts[1], heap), like(self, parts[2], heap)});
}

/// Whether the text has this at its start (or end); of a tuple: any of these.
template <bool at_end>
Value with_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given(at_end ? "endswith" : "startswith", arguments, {"affix"});
  const auto fits = [&](const Value& affix) {
    const Text* text = as_text(affix);
    if (!text) throw Error(fmt::format("{} is compared with a text", describe(affix)), "a text");
    return at_end ? self.utf8.ends_with(text->utf8) : self.utf8.starts_with(text->utf8);
  };
  const Sequence* several = as_sequence(given.need(0));
  if (!several || several->kind != Sequence::Kind::Tuple) return fits(given.need(0));
  heap.step(static_cast<int64_t>(several->items.size()));
  return std::any_of(several->items.begin(), several->items.end(), fits);
}

template <bool at_end>
Value remove_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given(at_end ? "removesuffix" : "removeprefix", arguments, {"affix"});
  const std::string_view affix = given.need_text(0);
  std::string_view text = self.utf8;
  if (at_end && text.ends_with(affix))
    text.remove_suffix(affix.size());
  else if (!at_end && text.starts_with(affix))
    text.remove_prefix(affix.size());
  return like(self, text, heap);
}

Value replace_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("replace", arguments, {"old", "new", "count"});
  const auto part = [&](size_t i) {
    std::string text(given.need_text(i));
    return self.is_markup && !as_text(given.need(i))->is_markup ? escape_html(text) : text;
  };
  return like(self, replace(self.utf8, part(0), part(1), given.integer(2, -1), heap), heap);
}

template <std::string (*change)(std::string_view)>
Value change_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("a method of text", arguments, {});
  return like(self, change(self.utf8), heap);
}

template <bool (*test)(std::string_view)>
Value test_method(const Text& self, const Arguments& arguments, Heap&) {
  const Parameters given("a method of text", arguments, {});
  return test(self.utf8);
}

/// Number of the character where the part begins; -1: nowhere.
template <bool from_right>
Value find_method_of_text(const Text& self, const Arguments& arguments, Heap&) {
  const Parameters given("find", arguments, {"sub"});
  const std::string_view text = self.utf8;
  const std::string_view part = given.need_text(0);
  const size_t at = from_right ? text.rfind(part) : text.find(part);
  return at == std::string_view::npos ? int64_t{-1} : length(text.substr(0, at));
}

template <bool from_right>
Value index_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Value at = find_method_of_text<from_right>(self, arguments, heap);
  if (std::get<int64_t>(at) < 0) throw Error("index() of what is not in the text", "a part of it");
  return at;
}

Value count_method(const Text& self, const Arguments& arguments, Heap&) {
  const Parameters given("count", arguments, {"sub"});
  const std::string_view part = given.need_text(0);
  if (part.empty()) return length(self.utf8) + 1;
  return static_cast<int64_t>(split(self.utf8, part, -1, false).size()) - 1;
}

Value join_method(const Text& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("join", arguments, {"iterable"});
  std::string out;
  bool first = true;
  for (const Value& item : iterate(given.need(0), heap)) {
    const Text* text = as_text(item);
    if (!text) throw Error(fmt::format("{} is joined", describe(item)), "texts");
    heap.check_room(1, out.size() + self.utf8.size() + 6 * text->utf8.size());
    if (!first) out += self.utf8;
    first = false;
    out += self.is_markup && !text->is_markup ? escape_html(text->utf8) : text->utf8;
  }
  return like(self, out, heap);
}

/// Null: none.
TextMethod find_text_method(std::string_view name) {
  static const std::map<std::string_view, TextMethod> methods = {
      {"capitalize", change_method<capitalize>},
      {"count", count_method},
      {"endswith", with_method<true>},
      {"find", find_method_of_text<false>},
      {"index", index_method<false>},
      {"isalnum", test_method<all_letters_or_digits>},
      {"isalpha", test_method<all_letters>},
      {"isdigit", test_method<all_digits>},
      {"islower", test_method<is_lower>},
      {"isspace", test_method<all_spaces>},
      {"isupper", test_method<is_upper>},
      {"join", join_method},
      {"lower", change_method<lower>},
      {"lstrip", strip_method<Side::Left>},
      {"partition", partition_method<false>},
      {"removeprefix", remove_method<false>},
      {"removesuffix", remove_method<true>},
      {"replace", replace_method},
      {"rfind", find_method_of_text<true>},
      {"rindex", index_method<true>},
      {"rpartition", partition_method<true>},
      {"rsplit", split_method<true>},
      {"rstrip", strip_method<Side::Right>},
      {"split", split_method<false>},
      {"splitlines", splitlines_method},
      {"startswith", with_method<false>},
      {"strip", strip_method<Side::Both>},
      {"title", change_method<title>},
      {"upper", change_method<upper>},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

Value dict_get(const Dict& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("get", arguments, {"key", "default"});
  heap.step(1 + static_cast<int64_t>(self.entries.size()) / 16);
  if (const Value* value = self.find(given.need(0))) return *value;
  return given.find(1) ? *given.find(1) : None{};
}

Value dict_view(const Dict& self, std::string_view name, Heap& heap) {
  std::vector<Value> items;
  for (const auto& [key, value] : self.entries)
    items.push_back(name == "keys" ? key : name == "values" ? value : heap.tuple({key, value}));
  return heap.sequence(Sequence::Kind::DictView, std::move(items));
}

std::optional<Value> find_dict_method(const Dict& self, std::string_view name, Heap& heap) {
  if (name == "get")
    return heap.function("get", [&self, &heap](const Arguments& arguments) {
      return dict_get(self, arguments, heap);
    });
  if (name == "copy")
    return heap.function("copy", [&self](const Arguments& arguments) {
      const Parameters given("copy", arguments, {});
      return &self;  // nothing can change it, so it may stand for its copy
    });
  if (name == "items" || name == "keys" || name == "values")
    return heap.function(std::string(name),
                         [&self, &heap, own = std::string(name)](const Arguments& arguments) {
                           const Parameters given(own, arguments, {});
                           return dict_view(self, own, heap);
                         });
  return std::nullopt;
}

Value list_index(const Sequence& self, const Value& item, Heap& heap) {
  for (size_t i = 0; i < self.items.size(); ++i)
    if (equal(self.items[i], item, heap)) return static_cast<int64_t>(i);
  throw Error("index() of what is not in the list", "an element of it");
}

std::optional<Value> find_list_method(const Sequence& self, std::string_view name, Heap& heap) {
  if (name == "index")
    return heap.function("index", [&self, &heap](const Arguments& arguments) {
      return list_index(self, Parameters("index", arguments, {"value"}).need(0), heap);
    });
  if (name == "count")
    return heap.function("count", [&self, &heap](const Arguments& arguments) -> Value {
      const Parameters given("count", arguments, {"value"});
      return static_cast<int64_t>(
          std::count_if(self.items.begin(), self.items.end(),
                        [&](const Value& item) { return equal(item, given.need(0), heap); }));
    });
  if (name == "copy" && self.kind == Sequence::Kind::List)
    return heap.function("copy", [&self](const Arguments& arguments) {
      const Parameters given("copy", arguments, {});
      return &self;
    });
  return std::nullopt;
}

Value loop_cycle(const Loop& loop, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    throw Error("cycle without values", "one or more");
  return arguments.positional[loop.index % arguments.positional.size()];
}

}  // namespace

std::optional<Value> find_method(const Value& object, std::string_view name, Heap& heap) {
  if (const Text* text = as_text(object)) {
    const TextMethod method = find_text_method(name);
    if (!method) return std::nullopt;
    return heap.function(std::string(name), [text, method, &heap](const Arguments& arguments) {
      heap.scan(text->utf8.size());
      return method(*text, arguments, heap);
    });
  }
  if (const Dict* dict = as_dict(object)) return find_dict_method(*dict, name, heap);
  if (const Sequence* sequence = as_sequence(object);
      sequence &&
      (sequence->kind == Sequence::Kind::List || sequence->kind == Sequence::Kind::Tuple))
    return find_list_method(*sequence, name, heap);
  if (const auto* loop = std::get_if<const Loop*>(&object); loop && name == "cycle")
    return heap.function("cycle", [state = *loop](const Arguments& arguments) {
      return loop_cycle(*state, arguments);
    });
  return std::nullopt;
}

}  // namespace medusa::jinja
