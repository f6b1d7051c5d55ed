// map, select, reject, selectattr, rejectattr: filters that apply another filter or a test to each
// element. Jinja runs them when their elements are asked for, we at once: the same but for an error
// in elements that nobody asks for.
#include <fmt/format.h>

#include "data/chat/jinja/access.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/filters.h"
#include "data/chat/jinja/parameters.h"
#include "data/chat/jinja/tests.h"

namespace medusa::jinja {
namespace {

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

const FilterTable& selection_filters() {
  static const FilterTable kFilters = {
      {"map", map_filter},
      {"reject", select_filter<false, false>},
      {"rejectattr", select_filter<false, true>},
      {"select", select_filter<true, false>},
      {"selectattr", select_filter<true, true>},
  };
  return kFilters;
}

}  // namespace medusa::jinja
