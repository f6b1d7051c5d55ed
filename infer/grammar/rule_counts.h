// The counts and escapes of a grammar's rules.
#pragma once

#include <string>
#include <string_view>

namespace medusa {

/// The same rules in a form that the grammar library reads to the letter: large counts are counts
/// of counts, and escapes by two digits have four. Refused are rules that repeat a text so often
/// that the library, which writes it out, would need much memory, and counts that it cannot hold.
/// @param rules  in GBNF's form; what else is wrong with them may pass.
/// @throws UserError  names the count and its place.
std::string supported_rules(std::string_view rules);

}  // namespace medusa
