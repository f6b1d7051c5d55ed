// The counts of a grammar's rules.
#pragma once

#include <string_view>

namespace medusa {

/// Refuses rules that repeat a text so often that the library, which writes it out, would need much
/// memory, and counts that it cannot hold.
/// @param rules  in GBNF's form; what else is wrong with them may pass.
/// @throws UserError  names the count and its place.
void expect_short_counts(std::string_view rules);

}  // namespace medusa
