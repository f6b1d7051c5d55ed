// Numbers among the values: bool counts as int, as in Python.
#pragma once

#include <optional>
#include <string>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// Of an int or a bool.
std::optional<int64_t> as_int(const Value& value);

/// Of an int, a bool or a float.
std::optional<double> as_number(const Value& value);

inline bool is_number(const Value& value) { return as_number(value).has_value(); }

/// As Python prints a float: shortest digits that read back the same, "1.0", "1e+16".
std::string print_float(double number);

/// Reads a float or an int as Python's float(text) and int(text, 10) do; nullopt where they raise.
/// Integers beyond 64 bits give nullopt.
std::optional<double> parse_float(std::string_view text);
std::optional<int64_t> parse_int(std::string_view text);

/// a op b for +, -, *, /, "//", % and "**" (operation '^') of two numbers.
/// @throws Error  division by zero, an integer beyond 64 bits.
Value calculate(char operation, const Value& a, const Value& b);

}  // namespace medusa::jinja
