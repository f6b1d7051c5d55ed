// SentencePiece's BPE (Kudo & Richardson, arXiv:1808.06226) as Llama 1 and 2 use it: neighbours are
// merged in the order of the merged piece's score; what stays unknown is written as byte pieces.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/added_tokens.h"
#include "data/tokenizer.h"

namespace medusa {

/// Everything such a tokenizer is made of, as read from some file and not yet trusted.
struct SentencePieceParts {
  std::string source;               // the file, for messages
  std::vector<std::string> pieces;  // [V]; a space is written U+2581
  std::vector<float> scores;        // [V]; the highest is merged first
  std::vector<AddedToken> added;
  std::vector<TokenId> byte_pieces;  // their text is "<0x0A>"
  std::optional<TokenId> unknown;    // for characters without a piece, if there are no byte pieces
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  bool adds_bos = true;
  bool adds_space = true;  // a space before the text (and after a special token)
  std::string chat_template;
};

/// Invalid UTF-8 is read as U+FFFD. With all 256 byte pieces, decode(encode(text)) is the text
/// after one space where adds_space is set; U+2581 itself comes back as a space.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// @throws UserError  a piece twice, a byte piece that names no byte, an id or a length that does
  ///                    not fit, or characters that cannot be written at all.
  explicit SentencePieceTokenizer(SentencePieceParts parts);
  SentencePieceTokenizer(const SentencePieceTokenizer&) = delete;
  SentencePieceTokenizer& operator=(const SentencePieceTokenizer&) = delete;

  std::vector<TokenId> encode(std::string_view text, bool parse_special) const override;
  std::string bytes(TokenId id) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(bytes_.size()); }
  bool is_special(TokenId id) const override;
  std::optional<TokenId> bos() const override { return bos_; }
  std::optional<TokenId> eos() const override { return eos_; }
  bool adds_bos() const override { return adds_bos_; }
  std::optional<TokenId> find(std::string_view piece) const override;
  const std::string& chat_template() const override { return chat_template_; }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  struct Symbol;
  void read_pieces(const SentencePieceParts& parts);
  void encode_gap(std::string_view text, std::vector<TokenId>& ids) const;
  void merge(std::string_view text, std::vector<Symbol>& symbols) const;
  void write_symbol(std::string_view piece, std::vector<TokenId>& ids) const;

  std::vector<std::string> pieces_;                    // [V]
  std::vector<float> scores_;                          // [V]
  std::vector<std::string> bytes_;                     // [V]
  std::vector<bool> special_;                          // [V]
  std::unordered_map<std::string_view, TokenId> ids_;  // piece (in pieces_) -> id; normal ones only
  std::array<TokenId, 256> byte_ids_{};                // -1: there is no such byte piece
  AddedTokens added_;
  std::optional<TokenId> unknown_;
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  bool adds_bos_;
  bool adds_space_;
  std::string chat_template_;
  std::string fingerprint_;
};

}  // namespace medusa
