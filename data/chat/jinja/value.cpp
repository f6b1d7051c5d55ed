#include "data/chat/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/operators.h"

namespace medusa::jinja {

const Value* Dict::find(const Value& key) const {
  for (const auto& [name, value] : entries)
    if (equal_scalars(name, key)) return &value;
  return nullptr;
}

const Value* Dict::find(std::string_view text) const {
  for (const auto& [name, value] : entries)
    if (const Text* name_text = as_text(name); name_text && name_text->utf8 == text) return &value;
  return nullptr;
}

bool is_true(const Value& value) {
  if (is_undefined(value) || is_none(value)) return false;
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* i = std::get_if<int64_t>(&value)) return *i != 0;
  if (const auto* d = std::get_if<double>(&value)) return *d != 0;
  if (const Text* text = as_text(value)) return !text->utf8.empty();
  if (const Dict* dict = as_dict(value)) return !dict->entries.empty();
  if (const Sequence* sequence = as_sequence(value))
    return sequence->kind == Sequence::Kind::Generator || !sequence->items.empty();
  return true;
}

std::string_view type_name(const Value& value) {
  static constexpr std::string_view kNames[] = {"undefined", "NoneType",      "bool",    "int",
                                                "float",     "str",           "list",    "dict",
                                                "Namespace", "loop variable", "function"};
  if (const Sequence* sequence = as_sequence(value)) {
    switch (sequence->kind) {
      case Sequence::Kind::List:
        return "list";
      case Sequence::Kind::Tuple:
        return "tuple";
      case Sequence::Kind::Range:
        return "range";
      case Sequence::Kind::DictView:
        return "dict view";
      case Sequence::Kind::Generator:
        return "generator";
    }
  }
  return kNames[value.index()];
}

std::string describe(const Value& value) {
  if (const auto* undefined = std::get_if<Undefined>(&value))
    return undefined->reason ? undefined->reason->utf8 : "an undefined value";
  return fmt::format("a value of type {}", type_name(value));
}

std::optional<int64_t> as_int(const Value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<int64_t>(&value)) return *i;
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto i = as_int(value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

Value Heap::text(std::string utf8, bool is_markup) {
  take(sizeof(Text) + utf8.size());
  return &texts_.emplace_back(Text{std::move(utf8), is_markup, false});
}

Value Heap::large_integer(std::string digits) {
  take(sizeof(Text) + digits.size());
  return &texts_.emplace_back(Text{std::move(digits), false, /*is_number=*/true});
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
