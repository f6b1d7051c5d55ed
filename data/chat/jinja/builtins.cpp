#include "data/chat/jinja/builtins.h"

#include <fmt/format.h>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/parameters.h"
#include "data/chat/jinja/print.h"

namespace medusa::jinja {
namespace {

Filter find_filter(std::string_view name) {
  for (const FilterTable* table : {&text_filters(), &number_filters(), &sequence_filters()})
    if (const auto found = table->find(name); found != table->end()) return found->second;
  return nullptr;
}

constexpr int64_t kMaxRange = 100'000;  // as Jinja's sandbox has it

Value range(const Arguments& arguments, Heap& heap) {
  const Parameters given("range", arguments, {"start", "stop", "step"});
  given.need(0);
  const bool one = !given.find(1);
  const int64_t start = one ? 0 : given.integer(0, 0);
  const int64_t stop = given.integer(one ? 0 : 1, 0);
  const int64_t step = given.integer(2, 1);
  if (step == 0) throw Error("a range with the step 0", "another step");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() == kMaxRange)
      throw Error(fmt::format("a range of more than {} numbers", kMaxRange), "a smaller one");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  heap.step(static_cast<int64_t>(items.size()));
  return heap.sequence(Sequence::Kind::Range, std::move(items));
}

/// dict(mapping, name=value, …)
std::vector<std::pair<Value, Value>> entries(std::string_view function, const Arguments& arguments,
                                             Heap& heap) {
  std::vector<std::pair<Value, Value>> out;
  if (!arguments.positional.empty()) {
    const Dict* dict = as_dict(arguments.positional[0]);
    if (!dict || arguments.positional.size() > 1)
      throw Error(fmt::format("{} of {}", function, describe(arguments.positional[0])),
                  "one dict, or arguments with names");
    out = dict->entries;
  }
  for (const auto& [name, value] : arguments.named) out.emplace_back(heap.text(name), value);
  return out;
}

Value make_namespace(const Arguments& arguments, Heap& heap) {
  std::vector<std::pair<std::string, Value>> attributes;
  const Value dict = heap.dict(entries("namespace", arguments, heap));
  for (const auto& [key, value] : as_dict(dict)->entries)
    attributes.emplace_back(print(key, heap), value);
  return heap.name_space(std::move(attributes));
}

Value format_time(const std::tm& now, const Arguments& arguments, Heap& heap) {
  const Parameters given("strftime_now", arguments, {"format"});
  const std::string format(given.need_text(0));
  char text[1024];
  const size_t size = std::strftime(text, sizeof text, format.c_str(), &now);
  if (size == 0 && !format.empty())
    throw Error(fmt::format("the time format '{}'", format), "one that gives some text");
  return heap.text(std::string(text, size));
}

}  // namespace

bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }

Value apply_filter(std::string_view name, const Value& input, const Arguments& arguments,
                   Heap& heap) {
  const Filter filter = find_filter(name);
  if (!filter) throw Error(fmt::format("the filter '{}'", name), "one that this program knows");
  const Descent descent(heap);
  if (const Text* text = as_text(input)) heap.scan(text->utf8.size());
  return filter(input, arguments, heap);
}

Scope make_globals(const std::optional<std::tm>& now, Heap& heap) {
  Scope scope;
  const auto add = [&](const char* name, std::function<Value(const Arguments&)> call) {
    scope.set(name, heap.function(name, std::move(call)));
  };
  add("range", [&heap](const Arguments& arguments) { return range(arguments, heap); });
  add("namespace", [&heap](const Arguments& arguments) { return make_namespace(arguments, heap); });
  add("dict",
      [&heap](const Arguments& arguments) { return heap.dict(entries("dict", arguments, heap)); });
  add("raise_exception", [&heap](const Arguments& arguments) -> Value {
    throw Refusal(print(Parameters("raise_exception", arguments, {"message"}).need(0), heap));
  });
  if (now)
    add("strftime_now", [now = *now, &heap](const Arguments& arguments) {
      return format_time(now, arguments, heap);
    });
  return scope;
}

}  // namespace medusa::jinja
