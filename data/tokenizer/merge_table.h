// The merges of a BPE vocabulary, and their application to one word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/token.h"

namespace medusa {

/// Which neighbors become one token, and in which order of preference. An open-addressed hash
/// table: a lookup per neighbor is what encoding spends its time on.
///
/// Thread safety: const calls may run at the same time.
class MergeTable {
 public:
  explicit MergeTable(size_t num_merges);

  /// @returns false if the pair is already there; then nothing is changed.
  bool add(TokenId left, TokenId right, int32_t rank, TokenId merged);

  /// Merges neighbors among tokens[begin], … until none is left: always the pair of lowest rank,
  /// of these the leftmost. O(n log n) for n tokens.
  void apply(std::vector<TokenId>& tokens, size_t begin = 0) const;

 private:
  struct Slot {
    TokenId left = -1;  // -1: free
    TokenId right = -1;
    int32_t rank = 0;
    TokenId merged = 0;
  };
  struct Candidate;

  static constexpr size_t kShortWord = 32;  // tokens; below it a scan beats a heap

  void apply_short(std::vector<TokenId>& tokens, size_t begin) const;
  void apply_long(std::vector<TokenId>& tokens, size_t begin) const;
  const Slot* find(TokenId left, TokenId right) const;
  size_t start(TokenId left, TokenId right) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace medusa
