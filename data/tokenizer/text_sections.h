// Takes the added tokens out of a text and normalizes what stands between them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/text_normalizer.h"

namespace medusa {

/// Added tokens are found in the text as it stands; those with a normalized form are found
/// afterwards, in the normalized text between the others.
///
/// Thread safety: const calls may run at the same time.
class TextSections {
 public:
  TextSections() = default;
  TextSections(std::vector<AddedToken> tokens, TextNormalizer normalizer);

  /// Hands over from left to right the sections, normalized and never empty, and the added tokens
  /// between them.
  /// @param text          invalid UTF-8 is read as U+FFFD.
  /// @param with_special  false: special tokens are not looked for.
  void split(std::string_view text, bool with_special,
             const std::function<void(std::string_view, SectionStart)>& section,
             const std::function<void(TokenId)>& token) const;

  /// nullptr if no added token has this text.
  const AddedToken* find(std::string_view text) const;

 private:
  std::vector<AddedToken> tokens_;  // as given
  AddedTokens in_text_;
  AddedTokens in_normalized_;  // with their normalized forms as texts
  TextNormalizer normalizer_;
};

}  // namespace medusa
