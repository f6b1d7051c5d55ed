// SentencePiece's unigram model (Kudo, arXiv:1804.10959): of all ways to cut a text into pieces the
// one with the highest sum of scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "data/tokenizer/sentencepiece/piece_model.h"

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

class UnigramModel final : public PieceModel {
 public:
  /// What sums of scores are rounded to. Where two ways are nearly equal it decides, so it must be
  /// that of the library whose file this is.
  enum class Sums { Float, Double };

  /// @param scores  [V], logarithms of probabilities.
  /// @param unknown_score  of a character that is no piece.
  UnigramModel(std::vector<double> scores, double unknown_score, Sums sums);

  /// Only what is added here is looked for.
  void add(std::string_view piece, TokenId id) { trie_.add(piece, id); }

  /// O(n · longest piece) time, 16 bytes of memory per byte of text.
  void encode(std::string_view text, const UnknownText& unknown,
              std::vector<TokenId>& ids) const override;

 private:
  template <typename Sum>
  void best_cut(std::string_view text, const UnknownText& unknown, std::vector<TokenId>& ids) const;

  PieceTrie trie_;
  std::vector<double> scores_;
  double unknown_score_;
  Sums sums_;
};

}  // namespace medusa
