// SentencePiece's BPE: the characters of a text are merged, neighbor by neighbor, into pieces.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/tokenizer/merge_table.h"
#include "data/tokenizer/sentencepiece/piece_model.h"

namespace medusa {

/// Ids of pieces by their text, which lives elsewhere.
using PieceIds = std::unordered_map<std::string_view, TokenId>;

class PieceMerges final : public PieceModel {
 public:
  /// Whatever two neighbors make a piece may be merged: the highest score first, of equal ones the
  /// leftmost.
  /// @param scores  [V], by id.
  static PieceMerges by_score(const PieceIds& ids, const std::vector<double>& scores);

  /// Only the listed pairs are merged, the first of the list first.
  /// @param source  the file, for messages.
  /// @throws UserError  a merge of what is no piece or into none, or one that is there twice.
  static PieceMerges by_list(const PieceIds& ids,
                             const std::vector<std::pair<std::string, std::string>>& merges,
                             const std::string& source);

  void encode(std::string_view text, const UnknownText& unknown,
              std::vector<TokenId>& ids) const override;

 private:
  PieceMerges(const PieceIds& ids, size_t num_merges);
  TokenId symbol_at(std::string_view text, size_t& size) const;
  void write_run(size_t run, size_t begin, const UnknownText& unknown,
                 std::vector<TokenId>& ids) const;

  MergeTable merges_;
  std::array<TokenId, 128> ascii_{};                  // symbol of each character, -1: none
  std::unordered_map<uint32_t, TokenId> characters_;  // the others, by code point
  // Characters that are no piece but part of one: symbols from first_hidden_ on.
  TokenId first_hidden_ = 0;
  std::vector<std::string> hidden_;
  bool words_stand_alone_ = true;  // no piece has a space mark behind another character
};

}  // namespace medusa
