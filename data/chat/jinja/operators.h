// Python's operators: + - * / // % ** ~, the signs, ==, < and in.
#pragma once

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// @param operation  as Arithmetic has it.
/// @throws Error  the operands do not go together, or one is undefined ('~' takes anything).
Value apply_operator(char operation, const Value& left, const Value& right, Heap& heap);

/// -value, or +value.
Value apply_sign(bool negative, const Value& value);

/// Two texts one behind the other; where one is markup, the other is escaped.
Value join_texts(const Text& left, const Text& right, Heap& heap);

/// a op b for +, -, *, /, "//", % and "**" (operation '^') of two numbers.
/// @throws Error  division by zero, an integer beyond 64 bits.
Value calculate(char operation, const Value& a, const Value& b);

/// 1 == 1.0 == True; texts, lists and dicts by content; everything else by identity.
bool equal(const Value& a, const Value& b, Heap& heap);

/// @throws Error  the types have no order.
bool less(const Value& a, const Value& b, Heap& heap);

/// item in container. @throws Error  the container cannot be searched.
bool contains(const Value& container, const Value& item, Heap& heap);

/// Whether it may be the key of a dict: a text, a number or none.
bool is_hashable(const Value& key);

/// equal() for what may be a key; false for all else.
bool equal_scalars(const Value& a, const Value& b);

}  // namespace medusa::jinja
