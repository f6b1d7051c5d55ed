// Byte-level byte-pair encoding (Sennrich et al., arXiv:1508.07909, over bytes as in GPT-2): added
// tokens are cut out, the rest is normalized and cut into words, the bytes of a word are merged.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/tokenizer/merge_table.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/text_sections.h"
#include "data/tokenizer/tokenizer.h"

namespace medusa {

/// Everything a byte-level tokenizer is made of, as read from some file and not yet trusted.
struct BpeParts {
  std::string source;               // the file, for messages
  std::vector<std::string> tokens;  // [V] text of each id: in the byte alphabet, added ones literal
  std::vector<std::pair<std::string, std::string>> merges;  // the most preferred first
  std::vector<AddedToken> added;
  PreTokenizer pre_tokenizer;
  std::string pre_tokenizer_text;  // what the file says of it, for the fingerprint
  Normalization normalization = Normalization::None;
  bool whole_words_first = false;  // a word that is a token is that token, whatever the merges say
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  bool adds_bos = false;
  std::string chat_template;
};

/// Invalid UTF-8 is read as U+FFFD. A byte for which the vocabulary has no token is left out, as in
/// the libraries these vocabularies come from (SmolLM2 lacks a few control characters); with all
/// bytes present and no normalization, decode(encode(text)) is the text.
class BpeTokenizer final : public Tokenizer {
 public:
  /// @throws UserError  a token twice, a merge of what is no token or into none, a merge twice, an
  ///                    id outside the vocabulary.
  explicit BpeTokenizer(BpeParts parts);
  BpeTokenizer(const BpeTokenizer&) = delete;
  BpeTokenizer& operator=(const BpeTokenizer&) = delete;

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
  void read_tokens(const BpeParts& parts);
  void read_merges(const BpeParts& parts);
  void encode_word(std::string_view word, std::vector<TokenId>& ids) const;

  std::vector<std::string> bytes_;                     // [V]
  std::vector<bool> special_;                          // [V]
  std::unordered_map<std::string_view, TokenId> ids_;  // bytes (in bytes_) -> id; no special tokens
  std::array<TokenId, 256> byte_ids_{};                // -1: the vocabulary lacks that byte
  TextSections sections_;
  MergeTable merges_;
  PreTokenizer pre_tokenizer_;
  bool whole_words_first_;
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  bool adds_bos_;
  std::string chat_template_;
  std::string fingerprint_;
};

/// Visible Latin-1 characters stand for their own code; the 68 other bytes take U+0100 onward, in
/// order. A space is so written U+0120 (Ġ), a line feed U+010A.
/// @returns the bytes of a token, or nullopt if it has a character outside the alphabet.
std::optional<std::string> bytes_of_token(std::string_view token);

/// The inverse.
std::string token_of_bytes(std::string_view bytes);

}  // namespace medusa
