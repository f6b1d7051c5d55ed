// Tokens that are found in the text as they stand, before it is cut into words.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace medusa {

struct AddedToken {
  TokenId id = 0;
  std::string text;          // not empty
  bool special = false;      // a control token: <|im_end|>. Otherwise ordinary text worth a token
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space behind it along
  bool single_word = false;  // only where no letter, digit or underscore touches it
  std::string normalized{};  // not empty: looked for in this form, in the normalized text
  bool of_model = true;      // the model's own vocabulary lists it: merges may make it, too
};

/// Thread safety: const calls may run at the same time.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// Cuts text at the added tokens, the leftmost first and of those the longest, and hands over
  /// from left to right the text between them (never empty) and the tokens.
  /// @param with_special  false: special tokens are not looked for.
  void split(std::string_view text, bool with_special,
             const std::function<void(std::string_view)>& gap,
             const std::function<void(const AddedToken&)>& token) const;

 private:
  const AddedToken* match_at(std::string_view text, size_t at, bool with_special) const;

  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // indices into tokens_, the longest first
};

}  // namespace medusa
