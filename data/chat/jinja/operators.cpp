#include "data/chat/jinja/operators.h"

#include <fmt/format.h>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/number.h"
#include "data/chat/jinja/print.h"

namespace medusa::jinja {
namespace {

std::string symbol(char operation) {
  if (operation == 'd') return "//";
  if (operation == '^') return "**";
  return std::string(1, operation);
}

[[noreturn]] void mismatch(char operation, const Value& left, const Value& right) {
  for (const Value& operand : {left, right})
    if (is_undefined(operand))
      throw Error(describe(operand),
                  fmt::format("a value to compute '{}' with", symbol(operation)));
  throw Error(fmt::format("{} {} {}", type_name(left), symbol(operation), type_name(right)),
              "two numbers, or two texts or lists to join");
}

bool is_list_or_tuple(const Sequence* sequence) {
  return sequence &&
         (sequence->kind == Sequence::Kind::List || sequence->kind == Sequence::Kind::Tuple);
}

Value join_sequences(const Sequence& left, const Sequence& right, Heap& heap) {
  heap.check_room(left.items.size() + right.items.size(), sizeof(Value));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return heap.sequence(left.kind, std::move(items));
}

/// A text or a list, so many times; nullopt: it is neither.
std::optional<Value> repeat(const Value& value, int64_t times, Heap& heap) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (const Text* text = as_text(value)) {
    heap.check_room(count, text->utf8.size());
    std::string out;
    out.reserve(count * text->utf8.size());
    for (size_t i = 0; i < count && !text->utf8.empty(); ++i) out += text->utf8;
    return heap.text(std::move(out), text->is_markup);
  }
  const Sequence* sequence = as_sequence(value);
  if (!is_list_or_tuple(sequence)) return std::nullopt;
  heap.check_room(count, sequence->items.size() * sizeof(Value));
  std::vector<Value> items;
  items.reserve(count * sequence->items.size());
  for (size_t i = 0; i < count && !sequence->items.empty(); ++i)
    items.insert(items.end(), sequence->items.begin(), sequence->items.end());
  return heap.sequence(sequence->kind, std::move(items));
}

}  // namespace

Value join_texts(const Text& left, const Text& right, Heap& heap) {
  const bool markup = left.is_markup || right.is_markup;
  const size_t growth = markup ? 6 : 1;  // "&amp;" at most
  heap.check_room(growth, left.utf8.size() + right.utf8.size());
  const auto part = [&](const Text& text) {
    return markup && !text.is_markup ? escape_html(text.utf8) : text.utf8;
  };
  return heap.text(part(left) + part(right), markup);
}

Value apply_operator(char operation, const Value& left, const Value& right, Heap& heap) {
  if (operation == '~') return heap.text(print(left, heap) + print(right, heap));
  if (is_number(left) && is_number(right)) return calculate(operation, left, right);
  if (operation == '+') {
    const Text* a = as_text(left);
    const Text* b = as_text(right);
    if (a && b) return join_texts(*a, *b, heap);
    const Sequence* c = as_sequence(left);
    const Sequence* d = as_sequence(right);
    if (is_list_or_tuple(c) && is_list_or_tuple(d) && c->kind == d->kind)
      return join_sequences(*c, *d, heap);
  }
  if (operation == '*') {
    if (const auto times = as_int(right))
      if (const auto repeated = repeat(left, *times, heap)) return *repeated;
    if (const auto times = as_int(left))
      if (const auto repeated = repeat(right, *times, heap)) return *repeated;
  }
  if (operation == '%' && as_text(left))
    throw Error("a text % values", "'~' or '+' to put texts together");
  mismatch(operation, left, right);
}

Value apply_sign(bool negative, const Value& value) {
  if (!is_number(value)) throw Error(fmt::format("{} with a sign", describe(value)), "a number");
  return calculate('*', Value(int64_t{negative ? -1 : 1}), value);
}

}  // namespace medusa::jinja
