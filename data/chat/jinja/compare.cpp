#include "data/chat/jinja/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/number.h"

namespace medusa::jinja {
namespace {

bool equal_items(const Sequence& a, const Sequence& b, Heap& heap) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == Sequence::Kind::Generator || a.kind == Sequence::Kind::DictView) return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!equal(a.items[i], b.items[i], heap)) return false;
  return true;
}

bool equal_entries(const Dict& a, const Dict& b, Heap& heap) {
  if (&a == &b) return true;
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    heap.step(1 + static_cast<int64_t>(b.entries.size()) / 16);
    const Value* other = b.find(key);
    if (!other || !equal(value, *other, heap)) return false;
  }
  return true;
}

bool less_items(const Sequence& a, const Sequence& b, Heap& heap) {
  for (size_t i = 0; i < std::min(a.items.size(), b.items.size()); ++i)
    if (!equal(a.items[i], b.items[i], heap)) return less(a.items[i], b.items[i], heap);
  return a.items.size() < b.items.size();
}

}  // namespace

bool equal_scalars(const Value& a, const Value& b) {
  if (const Text* text = as_text(a)) {
    const Text* other = as_text(b);
    return other && (text == other || text->utf8 == other->utf8);
  }
  const auto left = as_int(a);
  const auto right = as_int(b);
  if (left && right) return *left == *right;
  if (is_number(a) && is_number(b)) return *as_number(a) == *as_number(b);
  return is_none(a) && is_none(b);
}

bool equal(const Value& a, const Value& b, Heap& heap) {
  const Descent descent(heap);
  heap.step();
  if (const Text* text = as_text(a)) heap.scan(text->utf8.size());
  if (is_hashable(a)) return equal_scalars(a, b);
  if (is_undefined(a)) return is_undefined(b);
  if (const Sequence* left = as_sequence(a)) {
    const Sequence* right = as_sequence(b);
    return right && equal_items(*left, *right, heap);
  }
  if (const Dict* left = as_dict(a)) {
    const Dict* right = as_dict(b);
    return right && equal_entries(*left, *right, heap);
  }
  if (const auto* space = std::get_if<Namespace*>(&a)) {
    const auto* other = std::get_if<Namespace*>(&b);
    return other && *space == *other;
  }
  if (const auto* function = std::get_if<const Function*>(&a)) {
    const auto* other = std::get_if<const Function*>(&b);
    return other && *function == *other;
  }
  return false;
}

bool less(const Value& a, const Value& b, Heap& heap) {
  const Descent descent(heap);
  heap.step();
  const Text* left_text = as_text(a);
  const Text* right_text = as_text(b);
  if (left_text && right_text) {
    heap.scan(std::min(left_text->utf8.size(), right_text->utf8.size()));
    return left_text->utf8 < right_text->utf8;  // UTF-8 sorts as its code points do
  }
  const auto left = as_int(a);
  const auto right = as_int(b);
  if (left && right) return *left < *right;
  if (is_number(a) && is_number(b)) return *as_number(a) < *as_number(b);
  const Sequence* left_items = as_sequence(a);
  const Sequence* right_items = as_sequence(b);
  if (left_items && right_items && left_items->kind == right_items->kind &&
      (left_items->kind == Sequence::Kind::List || left_items->kind == Sequence::Kind::Tuple))
    return less_items(*left_items, *right_items, heap);
  throw Error(fmt::format("{} is compared with {}", describe(a), describe(b)),
              "two numbers or two texts");
}

bool contains(const Value& container, const Value& item, Heap& heap) {
  if (is_undefined(container)) return false;
  if (const Text* text = as_text(container)) {
    const Text* part = as_text(item);
    if (!part) throw Error(fmt::format("{} is searched for in a text", describe(item)), "a text");
    heap.scan(text->utf8.size());
    return text->utf8.find(part->utf8) != std::string::npos;
  }
  if (const Dict* dict = as_dict(container)) {
    heap.step(1 + static_cast<int64_t>(dict->entries.size()) / 16);
    return dict->find(item) != nullptr;
  }
  if (const Sequence* sequence = as_sequence(container)) {
    if (sequence->spent) return false;
    sequence->spent = sequence->kind == Sequence::Kind::Generator;
    return std::any_of(sequence->items.begin(), sequence->items.end(),
                       [&](const Value& each) { return equal(each, item, heap); });
  }
  throw Error(fmt::format("{} is searched", describe(container)), "a text, a list or a dict");
}

bool is_hashable(const Value& key) { return as_text(key) || is_number(key) || is_none(key); }

}  // namespace medusa::jinja
