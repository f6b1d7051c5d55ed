// Large counts of an expression or of rules, written as counts of counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace medusa {

/// Of what may be written so: items that are counted themselves grow with each count around them.
constexpr size_t kMostCountedBytes = 1 << 20;

/// What has the texts of `least` to `most` repetitions of an item, without a count above 100. With
/// one above 128 the grammar library lets tokens come that it then refuses (xgrammar 0.2.8: behind
/// `[ ]* "<" [^<>]{129} ">"` it lets `x>` come first). For counts up to a million the item stands
/// in it about ten times.
/// @param item   what a count may follow: a character, a class, a group or the name of a rule.
/// @param least  0 or more.
/// @param most   at least `least`; nothing: any number.
std::string counted(const std::string& item, int64_t least, std::optional<int64_t> most);

}  // namespace medusa
