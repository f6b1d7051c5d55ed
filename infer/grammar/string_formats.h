// Formats of JSON Schema's texts, as expressions.
#pragma once

#include <string>
#include <string_view>

namespace medusa {

/// An expression each of whose texts has the format. Rare forms are left out: years before 1000,
/// leap seconds, quoted names in addresses, IPv4 inside IPv6, names with labels of more than 30
/// letters.
/// @returns  empty: there is none.
std::string pattern_of_format(std::string_view format);

/// The formats that have an expression, for errors: "date, time, …".
std::string formats_with_patterns();

}  // namespace medusa
