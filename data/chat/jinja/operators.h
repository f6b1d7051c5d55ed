// + - * / // % ** ~ and the signs.
#pragma once

#include "data/chat/jinja/heap.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// @param operation  as Arithmetic has it.
/// @throws Error  the operands do not go together, or one is undefined ('~' takes anything).
Value apply_operator(char operation, const Value& left, const Value& right, Heap& heap);

/// -value, or +value.
Value apply_sign(bool negative, const Value& value);

/// Two texts one behind the other; where one is markup, the other is escaped.
Value join_texts(const Text& left, const Text& right, Heap& heap);

}  // namespace medusa::jinja
