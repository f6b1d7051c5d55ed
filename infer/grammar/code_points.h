// Sets of Unicode's code points, as classes of expressions hold them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace medusa {

/// A set of code points.
///
/// Thread safety: none.
class CodePoints {
 public:
  static constexpr uint32_t kLast = 0x10FFFF;

  CodePoints() = default;
  /// @param ranges  first and last of each.
  CodePoints(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges);

  void add(uint32_t first, uint32_t last);
  void add(const CodePoints& others);
  /// All that are not in this set.
  CodePoints complement() const;
  /// Those of this set that are not among the others.
  CodePoints without(const CodePoints& others) const;
  bool contains(uint32_t code) const;
  bool empty() const { return ranges_.empty(); }

  /// A class that holds these, one at least, in the form that the grammar library reads.
  std::string to_class() const;

 private:
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;
  /// Ascending and apart from each other: brought in order once, however many were added.
  const Ranges& ranges() const;

  mutable Ranges ranges_;
  mutable bool in_order_ = true;
};

/// What \d, \w and \s stand for in ECMA-262.
CodePoints digits();
CodePoints word_characters();
CodePoints white_space();

/// The halves of UTF-16, which no text of UTF-8 has.
CodePoints surrogates();

/// What a string of JSON does not hold as it is: control characters, quote, backslash, surrogates.
CodePoints escaped_in_json();

}  // namespace medusa
