#include "data/chat/jinja/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/print.h"
#include "data/chat/jinja/unicode.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {
namespace {

std::optional<Value> namespace_attribute(const Namespace& space, std::string_view name) {
  for (const auto& [each, value] : space.attributes)
    if (each == name) return value;
  return std::nullopt;
}

/// Without cycle, which is a method.
std::optional<Value> loop_attribute(const Loop& loop, std::string_view name) {
  const auto size = static_cast<int64_t>(loop.items->size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return size - index;
  if (name == "revindex0") return size - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == size;
  if (name == "length") return size;
  if (name == "depth") return int64_t{1};  // counts recursive loops, which we do not run
  if (name == "depth0") return int64_t{0};
  if (name == "previtem" && index > 0) return (*loop.items)[loop.index - 1];
  if (name == "nextitem" && index + 1 < size) return (*loop.items)[loop.index + 1];
  return std::nullopt;
}

std::optional<Value> own_attribute(const Value& object, std::string_view name, Heap& heap) {
  if (const auto* space = std::get_if<Namespace*>(&object))
    return namespace_attribute(**space, name);
  if (const auto* loop = std::get_if<const Loop*>(&object))
    if (auto found = loop_attribute(**loop, name)) return found;
  return find_method(object, name, heap);
}

void require_defined(const Value& object, std::string_view name) {
  if (is_undefined(object))
    throw Error(describe(object), fmt::format("a value, for its attribute '{}'", name));
}

Value missing(const Value& object, std::string_view name, Heap& heap) {
  return heap.undefined(fmt::format("the attribute '{}' of {}", name, describe(object)));
}

std::optional<Value> element(const Value& object, int64_t index, Heap& heap) {
  if (const Sequence* sequence = as_sequence(object)) {
    const auto size = static_cast<int64_t>(sequence->items.size());
    if (sequence->kind == Sequence::Kind::DictView || sequence->kind == Sequence::Kind::Generator)
      return std::nullopt;
    if (index < 0) index += size;
    if (index < 0 || index >= size) return std::nullopt;
    return sequence->items[static_cast<size_t>(index)];
  }
  const Text* text = as_text(object);
  if (!text) return std::nullopt;
  heap.scan(text->utf8.size());
  const int64_t size = length(text->utf8);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  const Value piece = slice(object, {index, index + 1, 1}, heap);
  return piece;
}

/// The indices that a slice of so many elements takes, as Python reckons them.
std::vector<size_t> slice_indices(int64_t size, const SliceBounds& bounds) {
  const bool forward = bounds.step > 0;
  const auto clamp = [&](std::optional<int64_t> at, int64_t otherwise) {
    if (!at) return otherwise;
    const int64_t from_start = *at < 0 ? *at + size : *at;
    return forward ? std::clamp<int64_t>(from_start, 0, size)
                   : std::clamp<int64_t>(from_start, -1, size - 1);
  };
  const int64_t start = clamp(bounds.start, forward ? 0 : size - 1);
  const int64_t stop = clamp(bounds.stop, forward ? size : -1);
  const int64_t step = std::clamp(bounds.step, -size - 1, size + 1);  // no farther: no overflow
  std::vector<size_t> out;
  for (int64_t i = start; forward ? i < stop : i > stop; i += step)
    out.push_back(static_cast<size_t>(i));
  return out;
}

}  // namespace

Value attribute(const Value& object, std::string_view name, Heap& heap) {
  require_defined(object, name);
  if (const auto own = own_attribute(object, name, heap)) return *own;
  if (const Dict* dict = as_dict(object)) {
    heap.step(1 + static_cast<int64_t>(dict->entries.size()) / 16);
    if (const Value* value = dict->find(name)) return *value;
  }
  return missing(object, name, heap);
}

Value subscript(const Value& object, const Value& key, Heap& heap) {
  const Text* name = as_text(key);
  require_defined(object, name ? name->utf8 : "[…]");
  if (const Dict* dict = as_dict(object)) {
    heap.step(1 + static_cast<int64_t>(dict->entries.size()) / 16);
    if (const Value* value = dict->find(key)) return *value;
  }
  if (const auto index = as_int(key))
    if (const auto found = element(object, *index, heap)) return *found;
  if (name)
    if (const auto own = own_attribute(object, name->utf8, heap)) return *own;
  return missing(object, name ? name->utf8 : is_number(key) ? "[number]" : "[…]", heap);
}

Value follow(const Value& object, const Value& path, Heap& heap) {
  const Text* names = as_text(path);
  if (!names) return subscript(object, path, heap);
  Value at = object;
  for (const std::string_view part : split(names->utf8, ".", -1, false)) {
    const auto index = all_digits(part) ? parse_int(part) : std::nullopt;
    at = subscript(at, index ? Value(*index) : heap.text(std::string(part)), heap);
  }
  return at;
}

Value slice(const Value& object, const SliceBounds& bounds, Heap& heap) {
  if (bounds.step == 0) throw Error("a slice with the step 0", "another step");
  if (const Text* text = as_text(object)) {
    heap.scan(text->utf8.size() * 4);
    heap.check_room(text->utf8.size(), sizeof(std::string_view) + sizeof(size_t));
    const auto all = characters(text->utf8);
    std::string out;
    for (const size_t i : slice_indices(static_cast<int64_t>(all.size()), bounds)) out += all[i];
    return heap.text(std::move(out), text->is_markup);
  }
  const Sequence* sequence = as_sequence(object);
  if (!sequence || sequence->kind == Sequence::Kind::DictView ||
      sequence->kind == Sequence::Kind::Generator)
    throw Error(fmt::format("a slice of {}", describe(object)), "one of a text or a list");
  heap.step(1 + static_cast<int64_t>(sequence->items.size()) / 4);
  std::vector<Value> out;
  for (const size_t i : slice_indices(static_cast<int64_t>(sequence->items.size()), bounds))
    out.push_back(sequence->items[i]);
  return heap.sequence(sequence->kind, std::move(out));
}

std::vector<Value> iterate(const Value& value, Heap& heap) {
  if (is_undefined(value)) return {};
  std::vector<Value> out;
  if (const Text* text = as_text(value)) {
    heap.scan(text->utf8.size() * 4);
    heap.check_room(text->utf8.size(), sizeof(std::string_view));
    for (const std::string_view character : characters(text->utf8))
      out.push_back(heap.text(std::string(character)));  // plain, even of markup
  } else if (const Dict* dict = as_dict(value)) {
    heap.step(static_cast<int64_t>(dict->entries.size()) / 4);
    for (const auto& [key, _] : dict->entries) out.push_back(key);
  } else if (const Sequence* sequence = as_sequence(value)) {
    heap.step(static_cast<int64_t>(sequence->items.size()) / 4);
    if (!sequence->spent) out = sequence->items;
    sequence->spent = sequence->kind == Sequence::Kind::Generator;
  } else {
    throw Error(fmt::format("{} is run through", describe(value)), "a list, a dict or a text");
  }
  return out;
}

bool is_iterable(const Value& value) {
  return is_undefined(value) || as_text(value) || as_dict(value) || as_sequence(value);
}

std::optional<int64_t> size_of(const Value& value, Heap& heap) {
  if (is_undefined(value)) return 0;
  if (const Dict* dict = as_dict(value)) return static_cast<int64_t>(dict->entries.size());
  if (const Text* text = as_text(value)) {
    heap.scan(text->utf8.size());
    return length(text->utf8);
  }
  const Sequence* sequence = as_sequence(value);
  if (!sequence || sequence->kind == Sequence::Kind::Generator) return std::nullopt;
  return static_cast<int64_t>(sequence->items.size());
}

}  // namespace medusa::jinja
