#include "data/tokenizer/sentencepiece/unigram_model.h"

#include <algorithm>

#include "base/utf8.h"

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

UnigramModel::UnigramModel(std::vector<double> scores, double unknown_score, Sums sums)
    : scores_(std::move(scores)), unknown_score_(unknown_score), sums_(sums) {}

template <typename Sum>
void UnigramModel::best_cut(std::string_view text, const UnknownText& unknown,
                            std::vector<TokenId>& ids) const {
  struct Way {  // the best one to cut the text up to here
    Sum score = 0;
    int32_t start = -1;  // of the last piece; -1: there is no way yet
    TokenId piece = -1;  // -1: an unknown character
  };
  std::vector<Way> best(text.size() + 1);
  best[0].start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t character = read_utf8(text.substr(at)).size;
    const auto offer = [&](size_t end, double score, TokenId piece) {
      const auto sum = static_cast<Sum>(static_cast<Sum>(score) + best[at].score);
      if (best[end].start < 0 || sum > best[end].score)
        best[end] = {sum, static_cast<int32_t>(at), piece};
    };
    bool is_known = false;  // the character by itself is a piece
    int32_t node = 0;
    for (size_t end = at; end < text.size();) {
      node = trie_.child(node, text[end++]);
      if (node < 0) break;
      const TokenId piece = trie_.piece_at(node);
      if (piece < 0) continue;
      offer(end, scores_[static_cast<size_t>(piece)], piece);
      is_known = is_known || end - at == character;
    }
    if (!is_known) offer(at + character, unknown_score_, -1);
    at += character;
  }
  std::vector<size_t> ends;
  for (size_t end = text.size(); end > 0; end = static_cast<size_t>(best[end].start))
    ends.push_back(end);
  const size_t begin = ids.size();
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Way& way = best[*end];
    const auto start = static_cast<size_t>(way.start);
    if (way.piece >= 0)
      ids.push_back(way.piece);
    else
      unknown.write(text.substr(start, *end - start), begin, ids);
  }
}

void UnigramModel::encode(std::string_view text, const UnknownText& unknown,
                          std::vector<TokenId>& ids) const {
  if (sums_ == Sums::Float)
    best_cut<float>(text, unknown, ids);
  else
    best_cut<double>(text, unknown, ids);
}

}  // namespace medusa
