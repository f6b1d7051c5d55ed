#include "data/tokenizer/sentencepiece/piece_trie.h"

namespace medusa {

PieceTrie::PieceTrie() : edges_(1024), pieces_(1, -1) {}

/// Where the edge lies, or where it would.
size_t PieceTrie::slot(int64_t from) const {
  const size_t mask = edges_.size() - 1;
  size_t i = (static_cast<uint64_t>(from) * 0x9E3779B97F4A7C15ULL >> 20) & mask;
  while (edges_[i].from >= 0 && edges_[i].from != from) i = (i + 1) & mask;
  return i;
}

void PieceTrie::grow() {
  std::vector<Edge> old(2 * edges_.size());
  old.swap(edges_);
  for (const Edge& edge : old)
    if (edge.from >= 0) edges_[slot(edge.from)] = edge;
}

void PieceTrie::add(std::string_view piece, TokenId id) {
  int32_t node = 0;
  for (const char byte : piece) {
    int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(pieces_.size());
      pieces_.push_back(-1);
      if (2 * pieces_.size() > edges_.size()) grow();
      const int64_t from = int64_t{node} * 256 + static_cast<uint8_t>(byte);
      edges_[slot(from)] = {from, next};
    }
    node = next;
  }
  pieces_[static_cast<size_t>(node)] = id;
}

int32_t PieceTrie::child(int32_t node, char byte) const {
  const Edge& edge = edges_[slot(int64_t{node} * 256 + static_cast<uint8_t>(byte))];
  return edge.from < 0 ? -1 : edge.to;
}

}  // namespace medusa
