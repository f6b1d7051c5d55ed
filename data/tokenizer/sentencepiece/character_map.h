// The character replacements that a SentencePiece model brings along (its precompiled_charsmap).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medusa {

/// A trie of character sequences and what each becomes, as SentencePiece stores it: the byte length
/// of a double array (little-endian, 4 bytes), its units (4 bytes each), then the replacements,
/// each ended by a zero byte.
///
/// A unit of the double array, bit by bit: 0-7 the byte that leads here; 8 a value hangs below; 9
/// the offset counts in 256s; 10-30 the offset to the children; 31 it is itself a value (its lower
/// bits: where in the replacements).
///
/// Thread safety: const calls may run at the same time.
class CharacterMap {
 public:
  /// @param source  the file, for messages.
  /// @throws UserError  the parts do not fit into blob, or the trie or a value points outside.
  CharacterMap(std::string_view blob, const std::string& source);

  /// Of the sequences that begin at a place the longest is replaced; other characters stay.
  /// @param text  valid UTF-8.
  std::string apply(std::string_view text) const;

 private:
  struct Match {
    size_t size = 0;  // bytes of the text; 0: none
    uint32_t value = 0;
  };
  Match longest_match(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // ends with a zero byte
};

}  // namespace medusa
