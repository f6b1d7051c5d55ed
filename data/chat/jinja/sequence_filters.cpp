// Filters on lists, dicts and what else can be run through.
#include <fmt/format.h>

#include <algorithm>

#include "data/chat/jinja/access.h"
#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/operators.h"
#include "data/chat/jinja/parameters.h"
#include "data/chat/jinja/unicode.h"

namespace medusa::jinja {
namespace {

/// What an element is sorted or told apart by: itself or an attribute, texts without their case.
class SortKey {
 public:
  SortKey(const Value* attribute, bool case_sensitive, Heap& heap)
      : attribute_(attribute && !is_none(*attribute) ? attribute : nullptr),
        case_sensitive_(case_sensitive),
        heap_(heap) {}

  Value of(const Value& item) const {
    const Value key = attribute_ ? follow(item, *attribute_, heap_) : item;
    const Text* text = as_text(key);
    return text && !case_sensitive_ ? heap_.text(lower(text->utf8)) : key;
  }

 private:
  const Value* attribute_;
  bool case_sensitive_;
  Heap& heap_;
};

/// Stable, also in reverse.
std::vector<Value> sorted(const std::vector<Value>& items, const SortKey& key, bool reverse,
                          Heap& heap) {
  std::vector<std::pair<Value, Value>> keyed;  // key, item
  keyed.reserve(items.size());
  for (const Value& item : items) keyed.emplace_back(key.of(item), item);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first, heap) : less(a.first, b.first, heap);
  });
  std::vector<Value> out;
  out.reserve(keyed.size());
  for (const auto& [_, item] : keyed) out.push_back(item);
  return out;
}

Value length_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("length", arguments, {});
  const auto size = size_of(input, heap);
  if (!size)
    throw Error(fmt::format("the length of {}", describe(input)), "one of a text or a list");
  return *size;
}

Value first_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("first", arguments, {});
  const auto items = iterate(input, heap);
  return items.empty() ? heap.undefined("the first element of an empty list") : items.front();
}

Value last_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("last", arguments, {});
  if (!size_of(input, heap))
    throw Error(fmt::format("the last element of {}", describe(input)), "one of a text or a list");
  const auto items = iterate(input, heap);
  return items.empty() ? heap.undefined("the last element of an empty list") : items.back();
}

Value list_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("list", arguments, {});
  return heap.list(iterate(input, heap));
}

Value reverse_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("reverse", arguments, {});
  if (as_text(input)) return slice(input, {std::nullopt, std::nullopt, -1}, heap);
  auto items = iterate(input, heap);
  std::reverse(items.begin(), items.end());
  return heap.generator(std::move(items));
}

Value sort_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  if (const Value* path = given.find(2))
    if (const Text* text = as_text(*path); text && text->utf8.find(',') != std::string::npos)
      throw Error("sort by several attributes", "one");
  const SortKey key(given.find(2), given.flag(1, false), heap);
  return heap.list(sorted(iterate(input, heap), key, given.flag(0, false), heap));
}

Value unique_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("unique", arguments, {"case_sensitive", "attribute"});
  const SortKey key(given.find(1), given.flag(0, false), heap);
  std::vector<Value> seen;
  std::vector<Value> out;
  for (const Value& item : iterate(input, heap)) {
    const Value own = key.of(item);
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& s) { return equal(s, own, heap); }))
      continue;
    seen.push_back(own);
    out.push_back(item);
  }
  return heap.generator(std::move(out));
}

template <bool largest>
Value extreme_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const SortKey key(given.find(1), given.flag(0, false), heap);
  const auto items = iterate(input, heap);
  if (items.empty()) return heap.undefined("an extreme of an empty list");
  const auto before = [&](const Value& a, const Value& b) {
    return less(key.of(a), key.of(b), heap);
  };
  return largest ? *std::max_element(items.begin(), items.end(), before)
                 : *std::min_element(items.begin(), items.end(), before);
}

Value sum_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("sum", arguments, {"attribute", "start"});
  Value total = given.find(1) ? *given.find(1) : Value(int64_t{0});
  const bool by_attribute = given.find(0) && !is_none(*given.find(0));
  for (const Value& item : iterate(input, heap)) {
    heap.step();
    total =
        apply_operator('+', total, by_attribute ? follow(item, *given.find(0), heap) : item, heap);
  }
  return total;
}

std::vector<Value> pairs(const Value& input, std::string_view filter, Heap& heap) {
  const Dict* dict = as_dict(input);
  if (!dict) throw Error(fmt::format("{} is given to {}", describe(input), filter), "a dict");
  std::vector<Value> out;
  for (const auto& [key, value] : dict->entries) out.push_back(heap.tuple({key, value}));
  return out;
}

Value items_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("items", arguments, {});
  return heap.generator(is_undefined(input) ? std::vector<Value>{} : pairs(input, "items", heap));
}

Value dictsort_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string_view by = given.text(1).value_or("key");
  if (by != "key" && by != "value")
    throw Error(fmt::format("dictsort by '{}'", by), "key or value");
  const Value position = int64_t{by == "key" ? 0 : 1};
  const SortKey key(&position, given.flag(0, false), heap);
  return heap.list(sorted(pairs(input, "dictsort", heap), key, given.flag(2, false), heap));
}

// map, select, reject, selectattr, rejectattr: filters that apply another filter or a test to each
// element. Jinja runs them when their elements are asked for, we at once: the same but for an error
// in elements that nobody asks for.

/// The arguments without the first ones: those of the filter or test that these name.
Arguments without_first(const Arguments& arguments, size_t num) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(num));
  return rest;
}

const std::string& name_of(const Value& value, std::string_view what) {
  const Text* text = as_text(value);
  if (!text) throw Error(fmt::format("{} names a {}", describe(value), what), "its name as a text");
  return text->utf8;
}

Value map_attribute(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("map", arguments, {"attribute", "default"});
  std::vector<Value> out;
  for (const Value& item : iterate(input, heap)) {
    heap.step();
    const Value found = follow(item, given.need(0), heap);
    const bool replaced = is_undefined(found) && given.find(1) && !is_none(*given.find(1));
    out.push_back(replaced ? *given.find(1) : found);
  }
  return heap.generator(std::move(out));
}

Value map_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  if (!is_true(input)) return heap.generator({});
  if (arguments.positional.empty()) return map_attribute(input, arguments, heap);
  const std::string& name = name_of(arguments.positional[0], "filter");
  const Arguments rest = without_first(arguments, 1);
  std::vector<Value> out;
  for (const Value& item : iterate(input, heap)) {
    heap.step();
    out.push_back(apply_filter(name, item, rest, heap));
  }
  return heap.generator(std::move(out));
}

/// Keeps what fits (or what does not): the element or an attribute of it, by a test or by being
/// true.
template <bool keep, bool by_attribute>
Value select_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  if (!is_true(input)) return heap.generator({});
  std::vector<Value> out;
  constexpr size_t kTest = by_attribute ? 1 : 0;  // where the test's name stands
  const auto& given = arguments.positional;
  if (given.size() < kTest) throw Error("a selection by no attribute", "its name");
  const bool has_test = given.size() > kTest;
  const Arguments rest = without_first(arguments, has_test ? kTest + 1 : kTest);
  for (const Value& item : iterate(input, heap)) {
    heap.step();
    const Value judged = by_attribute ? follow(item, given[0], heap) : item;
    const bool fits =
        has_test ? apply_test(name_of(given[kTest], "test"), judged, rest, heap) : is_true(judged);
    if (fits == keep) out.push_back(item);
  }
  return heap.generator(std::move(out));
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable filters = {
      {"count", length_filter},
      {"dictsort", dictsort_filter},
      {"first", first_filter},
      {"items", items_filter},
      {"last", last_filter},
      {"length", length_filter},
      {"list", list_filter},
      {"map", map_filter},
      {"max", extreme_filter<true>},
      {"min", extreme_filter<false>},
      {"reject", select_filter<false, false>},
      {"rejectattr", select_filter<false, true>},
      {"reverse", reverse_filter},
      {"select", select_filter<true, false>},
      {"selectattr", select_filter<true, true>},
      {"sort", sort_filter},
      {"sum", sum_filter},
      {"unique", unique_filter},
  };
  return filters;
}

}  // namespace medusa::jinja
