// The pieces of a vocabulary by their beginnings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace medusa {

/// A trie over bytes in one open-addressed table of edges. Node 0 is the empty text.
///
/// Thread safety: const calls may run at the same time.
class PieceTrie {
 public:
  PieceTrie();

  /// A text twice keeps the last id.
  void add(std::string_view piece, TokenId id);

  /// The node behind a byte; -1: no piece goes on so.
  int32_t child(int32_t node, char byte) const;

  /// The piece that ends at a node; -1: none.
  TokenId piece_at(int32_t node) const { return pieces_[static_cast<size_t>(node)]; }

 private:
  struct Edge {
    int64_t from = -1;  // node * 256 + byte; -1: free
    int32_t to = 0;
  };
  size_t slot(int64_t from) const;
  void grow();

  std::vector<Edge> edges_;      // a power of two, at most half full
  std::vector<TokenId> pieces_;  // of each node
};

}  // namespace medusa
