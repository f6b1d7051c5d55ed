// SentencePiece (Kudo & Richardson, arXiv:1808.06226) as Llama 1 and 2, Mistral, Gemma and Phi-3
// use it: spaces are marked, characters become pieces, and what stays unknown is written as byte
// pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/sentencepiece/piece_merges.h"
#include "data/tokenizer/text_sections.h"
#include "data/tokenizer/tokenizer.h"

namespace medusa {

/// How text is cut into pieces.
enum class PieceRule {
  Score,          // merges, the piece of highest score first
  Merges,         // merges in the order of a list
  Unigram,        // the cut of the highest sum of scores, rounded to float: SentencePiece's own
  UnigramDouble,  // the same with double: that of the tokenizers library
};

/// Everything such a tokenizer is made of, as read from some file and not yet trusted.
struct SentencePieceParts {
  std::string source;                                       // the file, for messages
  std::vector<std::string> pieces;                          // [V]; a space is written U+2581
  std::vector<double> scores;                               // [V]; empty with PieceRule::Merges
  std::vector<std::pair<std::string, std::string>> merges;  // with PieceRule::Merges only
  PieceRule rule = PieceRule::Score;
  std::vector<AddedToken> added;
  std::vector<TokenId> byte_pieces;  // their text is "<0x0A>"
  std::vector<TokenId> unused;       // pieces that no text may become
  std::optional<TokenId> unknown;    // for characters without a piece, if there are no byte pieces
  bool fuse_unknown = true;          // neighboring unknown characters share one token
  std::optional<double> unknown_score;  // unigram; none: 10 below the lowest score of a piece
  TextNormalizer normalizer = llama_normalizer(true);
  TextNormalizer marker;           // what is done last, when the normalized added tokens are out
  std::string normalizer_text;     // what the file says of both, for the fingerprint
  bool splits_words = false;       // no piece reaches over the start of a word, a space mark
  bool whole_words_first = false;  // a text that is a piece is that piece, whatever the merges say
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  bool adds_bos = true;
  std::string chat_template;
};

/// Control tokens are never made from text unless encode() is asked to read them; the tokenizers
/// library's unigram model makes them. With all 256 byte pieces and llama_normalizer(true),
/// decode(encode(text)) is the text after one space; U+2581 itself comes back as a space.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// @throws UserError  a piece twice or too long, a byte piece that names no byte, an id or a
  ///                    length that does not fit, or characters that cannot be written at all.
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
  enum class Use : uint8_t { Normal, Added, Byte, Unused };  // of an id

  void check(const SentencePieceParts& parts) const;
  std::vector<Use> read_uses(const SentencePieceParts& parts);
  void read_pieces(const SentencePieceParts& parts, const std::vector<Use>& uses);
  std::unique_ptr<PieceModel> make_model(const SentencePieceParts& parts) const;
  void encode_section(std::string_view text, std::vector<TokenId>& ids) const;
  void encode_word(std::string_view word, std::vector<TokenId>& ids) const;

  std::vector<std::string> pieces_;  // [V]
  std::vector<std::string> bytes_;   // [V]
  std::vector<bool> special_;        // [V]
  PieceIds ids_;                     // piece (in pieces_) -> id; those that text may become
  std::unique_ptr<PieceModel> model_;
  UnknownText unknown_;
  TextSections sections_;
  TextNormalizer marker_;
  bool splits_words_;
  bool whole_words_first_;
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  bool adds_bos_;
  std::string chat_template_;
  std::string fingerprint_;
};

}  // namespace medusa
