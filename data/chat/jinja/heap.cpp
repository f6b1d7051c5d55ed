#include "data/chat/jinja/heap.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/chat/jinja/compare.h"
#include "data/chat/jinja/error.h"

namespace medusa::jinja {

Value Heap::text(std::string utf8, bool is_markup) {
  take(sizeof(Text) + utf8.size());
  return &texts_.emplace_back(Text{std::move(utf8), is_markup});
}

Value Heap::sequence(Sequence::Kind kind, std::vector<Value> items) {
  take(sizeof(Sequence) + items.size() * sizeof(Value));
  return &sequences_.emplace_back(Sequence{kind, std::move(items)});
}

Value Heap::dict(const std::vector<std::pair<Value, Value>>& entries) {
  take(sizeof(Dict) + entries.size() * 2 * sizeof(Value));
  Dict dict;
  for (const auto& entry : entries) {
    const auto& [key, value] = entry;
    if (!is_hashable(key))
      throw Error(fmt::format("{} is the key of a dict", describe(key)), "a text or a number");
    step(1 + static_cast<int64_t>(dict.entries.size()) / 16);
    const auto present = std::find_if(dict.entries.begin(), dict.entries.end(), [&](const auto& e) {
      return equal_scalars(e.first, entry.first);
    });
    if (present != dict.entries.end())
      present->second = value;
    else
      dict.entries.emplace_back(key, value);
  }
  return &dicts_.emplace_back(std::move(dict));
}

Value Heap::name_space(std::vector<std::pair<std::string, Value>> attributes) {
  take(sizeof(Namespace) + attributes.size() * sizeof(attributes[0]));
  return &namespaces_.emplace_back(Namespace{std::move(attributes)});
}

Value Heap::loop(Loop state) {
  take(sizeof(Loop));
  return &loops_.emplace_back(state);
}

Value Heap::function(std::string name, std::function<Value(const Arguments&)> call) {
  take(sizeof(Function));
  return &functions_.emplace_back(Function{std::move(name), std::move(call)});
}

Value Heap::undefined(std::string reason) {
  return Undefined{std::get<const Text*>(text(std::move(reason)))};
}

void Heap::step(int64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.max_steps)
    throw Error(fmt::format("the template works for more than {} steps", limits_.max_steps),
                "one that ends sooner");
}

void Heap::take(size_t bytes) {
  check_room(1, bytes);
  bytes_ += static_cast<int64_t>(bytes);
}

void Heap::check_room(size_t count, size_t bytes) const {
  const auto room = static_cast<size_t>(limits_.max_bytes - bytes_);
  if (bytes != 0 && count > room / bytes)
    throw Error(fmt::format("the template makes more than {} bytes of text", limits_.max_bytes),
                "one that makes less");
}

Descent::Descent(Heap& heap) : heap_(heap) {
  if (heap.depth_ >= heap.limits_.max_depth)
    throw Error(fmt::format("the template nests deeper than {} levels", heap.limits_.max_depth),
                "one that nests less");
  ++heap.depth_;
}

}  // namespace medusa::jinja
