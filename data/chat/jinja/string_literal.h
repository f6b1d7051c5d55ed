// Undoes the escapes of a string in Jinja source.
#pragma once

#include <string>
#include <string_view>

namespace medusa::jinja {

/// @param body  what stands between the quotes.
/// @returns     as Python reads it: \n, \x41, \u00e9, \101, …; an unknown escape stays as it is.
/// @throws Error  an escape with digits missing, or \N{…}, which needs Unicode's list of names.
std::string unescape(std::string_view body, int line);

}  // namespace medusa::jinja
