// A tokenizer of 256 bytes and one special token, for tests that need no vocabulary.
#pragma once

#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace medusa::fixtures {

class ByteTokenizer : public Tokenizer {
 public:
  static constexpr TokenId kSpecial = 256;  // "<end>"

  std::vector<TokenId> encode(std::string_view text, bool parse_special) const override {
    std::vector<TokenId> ids;
    while (!text.empty()) {
      const bool special = parse_special && text.starts_with("<end>");
      ids.push_back(special ? kSpecial : static_cast<uint8_t>(text[0]));
      text.remove_prefix(special ? 5 : 1);
    }
    return ids;
  }
  std::string bytes(TokenId id) const override {
    return id == kSpecial ? "<end>" : std::string(1, static_cast<char>(id));
  }
  int64_t vocab_size() const override { return 257; }
  bool is_special(TokenId id) const override { return id == kSpecial; }
  std::optional<TokenId> bos() const override { return std::nullopt; }
  std::optional<TokenId> eos() const override { return kSpecial; }
  bool adds_bos() const override { return false; }
  std::optional<TokenId> find(std::string_view piece) const override {
    if (piece == "<end>") return kSpecial;
    if (piece.size() == 1) return static_cast<uint8_t>(piece[0]);
    return std::nullopt;
  }
  const std::string& chat_template() const override { return empty_; }
  const std::string& fingerprint() const override { return empty_; }

 private:
  std::string empty_;
};

}  // namespace medusa::fixtures
