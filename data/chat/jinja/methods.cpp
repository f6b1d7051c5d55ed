#include "data/chat/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/chat/jinja/compare.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/parameters.h"

namespace medusa::jinja {
namespace {

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
