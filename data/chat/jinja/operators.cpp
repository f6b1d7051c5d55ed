#include "data/chat/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/print.h"
#include "data/chat/jinja/value.h"

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

[[noreturn]] void overflow() {
  throw Error("an integer beyond 64 bits is computed", "smaller numbers");
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) {  // the one divisor whose quotient may not fit
    int64_t out = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &out)) overflow();
    return out;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// The sign of Python's remainder is the divisor's.
int64_t modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;  // where the machine traps on the smallest integer
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  int64_t out = 1;
  while (true) {
    if (exponent & 1)
      if (__builtin_mul_overflow(out, base, &out)) overflow();
    exponent >>= 1;
    if (exponent == 0) return out;
    if (__builtin_mul_overflow(base, base, &base)) overflow();
  }
}

Value calculate_ints(char operation, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (operation) {
    case '+':
      if (__builtin_add_overflow(a, b, &out)) overflow();
      return out;
    case '-':
      if (__builtin_sub_overflow(a, b, &out)) overflow();
      return out;
    case '*':
      if (__builtin_mul_overflow(a, b, &out)) overflow();
      return out;
    case '/':
      return static_cast<double>(a) / static_cast<double>(b);
    case '%':
      return modulo(a, b);
    case '^':
      return power(a, b);
    default:
      return floor_divide(a, b);
  }
}

Value calculate_floats(char operation, double a, double b) {
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '%':
      return floor_modulo(a, b);
    case '^':
      return std::pow(a, b);
    default:
      return std::floor(a / b);
  }
}

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

Value calculate(char operation, const Value& a, const Value& b) {
  const bool divides = operation == '/' || operation == '%' || operation == 'd';
  if ((divides && *as_number(b) == 0) ||
      (operation == '^' && *as_number(a) == 0 && *as_number(b) < 0))
    throw Error("a number is divided by zero", "another divisor");
  const auto left = as_int(a);
  const auto right = as_int(b);
  if (left && right) return calculate_ints(operation, *left, *right);
  return calculate_floats(operation, *as_number(a), *as_number(b));
}

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
