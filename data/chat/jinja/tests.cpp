#include <fmt/format.h>

#include <map>

#include "data/chat/jinja/access.h"
#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/operators.h"
#include "data/chat/jinja/parameters.h"
#include "data/chat/jinja/print.h"
#include "data/chat/jinja/unicode.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {
namespace {

using JinjaTest = bool (*)(const Value& value, const Parameters& given, Heap& heap);

struct Entry {
  JinjaTest test;
  int num_arguments = 0;  // 0 or 1
};

/// The remainder, of floats too.
double remainder(const Value& value, const Value& by) {
  if (!is_number(value) || !is_number(by))
    throw Error(fmt::format("{} is divided by {}", describe(value), describe(by)), "two numbers");
  return *as_number(calculate('%', value, by));
}

bool is_sequence(const Value& value, const Parameters&, Heap&) {
  const Sequence* sequence = as_sequence(value);
  if (!sequence) return is_iterable(value);
  return sequence->kind != Sequence::Kind::DictView && sequence->kind != Sequence::Kind::Generator;
}

/// The same object, as far as that can be told from outside: the constants and the numbers are.
bool is_same(const Value& value, const Parameters& given, Heap&) {
  return std::visit(
      [&](const auto& own) {
        using Held = std::decay_t<decltype(own)>;
        const auto* other = std::get_if<Held>(&given.need(0));
        if constexpr (std::is_same_v<Held, Undefined> || std::is_same_v<Held, None>)
          return other != nullptr;
        else
          return other && *other == own;
      },
      value);
}

bool is_less(const Value& value, const Parameters& given, Heap& heap) {
  return less(value, given.need(0), heap);
}
bool is_greater(const Value& value, const Parameters& given, Heap& heap) {
  return less(given.need(0), value, heap);
}
bool is_less_or_equal(const Value& value, const Parameters& given, Heap& heap) {
  return less(value, given.need(0), heap) || equal(value, given.need(0), heap);
}
bool is_greater_or_equal(const Value& value, const Parameters& given, Heap& heap) {
  return less(given.need(0), value, heap) || equal(value, given.need(0), heap);
}
bool is_equal(const Value& value, const Parameters& given, Heap& heap) {
  return equal(value, given.need(0), heap);
}
bool is_not_equal(const Value& value, const Parameters& given, Heap& heap) {
  return !equal(value, given.need(0), heap);
}

const std::map<std::string_view, Entry>& tests() {
  static const std::map<std::string_view, Entry> by_name = {
      {"boolean",
       {[](const Value& v, const auto&, Heap&) { return std::holds_alternative<bool>(v); }}},
      {"callable", {[](const Value& v, const auto&, Heap&) {
         return std::holds_alternative<const Function*>(v) || is_undefined(v);
       }}},
      {"defined", {[](const Value& v, const auto&, Heap&) { return !is_undefined(v); }}},
      {"undefined", {[](const Value& v, const auto&, Heap&) { return is_undefined(v); }}},
      {"none", {[](const Value& v, const auto&, Heap&) { return is_none(v); }}},
      {"true", {[](const Value& v, const auto&, Heap&) {
         return std::holds_alternative<bool>(v) && std::get<bool>(v);
       }}},
      {"false", {[](const Value& v, const auto&, Heap&) {
         return std::holds_alternative<bool>(v) && !std::get<bool>(v);
       }}},
      {"integer",
       {[](const Value& v, const auto&, Heap&) { return std::holds_alternative<int64_t>(v); }}},
      {"float",
       {[](const Value& v, const auto&, Heap&) { return std::holds_alternative<double>(v); }}},
      {"number", {[](const Value& v, const auto&, Heap&) { return is_number(v); }}},
      {"string", {[](const Value& v, const auto&, Heap&) { return as_text(v) != nullptr; }}},
      {"mapping", {[](const Value& v, const auto&, Heap&) { return as_dict(v) != nullptr; }}},
      {"iterable", {[](const Value& v, const auto&, Heap&) { return is_iterable(v); }}},
      {"sequence", {is_sequence}},
      {"escaped",
       {[](const Value& v, const auto&, Heap&) { return as_text(v) && as_text(v)->is_markup; }}},
      {"lower", {[](const Value& v, const auto&, Heap& h) { return is_lower(print(v, h)); }}},
      {"upper", {[](const Value& v, const auto&, Heap& h) { return is_upper(print(v, h)); }}},
      {"odd", {[](const Value& v, const auto&, Heap&) { return remainder(v, int64_t{2}) == 1; }}},
      {"even", {[](const Value& v, const auto&, Heap&) { return remainder(v, int64_t{2}) == 0; }}},
      {"divisibleby",
       {[](const Value& v, const Parameters& p, Heap&) { return remainder(v, p.need(0)) == 0; },
        1}},
      {"filter", {[](const Value& v, const auto&, Heap&) {
         return as_text(v) && has_filter(as_text(v)->utf8);
       }}},
      {"test", {[](const Value& v, const auto&, Heap&) {
         return as_text(v) && tests().contains(as_text(v)->utf8);
       }}},
      {"in",
       {[](const Value& v, const Parameters& p, Heap& h) { return contains(p.need(0), v, h); }, 1}},
      {"sameas", {is_same, 1}},
      {"==", {is_equal, 1}},
      {"eq", {is_equal, 1}},
      {"equalto", {is_equal, 1}},
      {"!=", {is_not_equal, 1}},
      {"ne", {is_not_equal, 1}},
      {"<", {is_less, 1}},
      {"lt", {is_less, 1}},
      {"lessthan", {is_less, 1}},
      {"<=", {is_less_or_equal, 1}},
      {"le", {is_less_or_equal, 1}},
      {">", {is_greater, 1}},
      {"gt", {is_greater, 1}},
      {"greaterthan", {is_greater, 1}},
      {">=", {is_greater_or_equal, 1}},
      {"ge", {is_greater_or_equal, 1}},
  };
  return by_name;
}

}  // namespace

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap) {
  const auto found = tests().find(name);
  if (found == tests().end())
    throw Error(fmt::format("the test '{}'", name), "one that this program knows");
  const Parameters given = found->second.num_arguments == 0
                               ? Parameters(name, arguments, {})
                               : Parameters(name, arguments, {"other"});
  if (const Text* text = as_text(value)) heap.scan(text->utf8.size());
  return found->second.test(value, given, heap);
}

}  // namespace medusa::jinja
