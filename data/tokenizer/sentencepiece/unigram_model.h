// SentencePiece's unigram model (Kudo, arXiv:1804.10959): of all ways to cut a text into pieces the
// one with the highest sum of scores.
#pragma once

#include <vector>

#include "data/tokenizer/sentencepiece/piece_model.h"
#include "data/tokenizer/sentencepiece/piece_trie.h"

namespace medusa {

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
