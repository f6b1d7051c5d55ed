// Escapes by two hexadecimal digits, which the grammar library reads as those of as many digits as
// follow.
#pragma once

#include <string>
#include <string_view>

namespace medusa {

/// The same part of an expression or of rules with \u00HH for each \xHH.
std::string with_long_escapes(std::string_view text);

}  // namespace medusa
