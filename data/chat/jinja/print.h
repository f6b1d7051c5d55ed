// Values as text, and numbers in text: Python's str(), repr(), float() and int().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// What {{ value }} writes: "None", "True", "1.5", "['a', 1]"; nothing for an undefined value.
/// @throws Error  what Python would print with an address: functions, generators, loops.
std::string print(const Value& value, Heap& heap);

/// The same; quotes a text: 'it\'s'.
std::string print_quoted(const Value& value, Heap& heap);

/// & < > ' " as HTML wants them.
std::string escape_html(const std::string& text);

/// As Python prints a float: shortest digits that read back the same, "1.0", "1e+16".
std::string print_float(double number);

/// Reads a float or an int as Python's float(text) and int(text, 10) do; nullopt where they raise.
/// Integers beyond 64 bits give nullopt.
std::optional<double> parse_float(std::string_view text);
std::optional<int64_t> parse_int(std::string_view text);

}  // namespace medusa::jinja
