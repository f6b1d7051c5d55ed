#include "data/tokenizer/text_sections.h"

#include "base/utf8.h"

namespace medusa {

TextSections::TextSections(std::vector<AddedToken> tokens, TextNormalizer normalizer)
    : tokens_(std::move(tokens)), normalizer_(std::move(normalizer)) {
  std::vector<AddedToken> first;
  std::vector<AddedToken> second;
  for (const auto& token : tokens_) {
    auto& list = token.normalized.empty() ? first : second;
    list.push_back(token);
    if (!token.normalized.empty()) list.back().text = token.normalized;
  }
  in_text_ = AddedTokens(std::move(first));
  in_normalized_ = AddedTokens(std::move(second));
}

void TextSections::split(std::string_view text, bool with_special,
                         const std::function<void(std::string_view, SectionStart)>& section,
                         const std::function<void(TokenId)>& token) const {
  std::string repaired;
  if (!is_ascii(text) && !is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  auto start = SectionStart::Text;
  const auto emit = [&](const AddedToken& found) {
    token(found.id);
    start = found.special ? SectionStart::SpecialToken : SectionStart::OrdinaryToken;
  };
  in_text_.split(
      text, with_special,
      [&](std::string_view gap) {
        const std::string normal = normalizer_.empty() ? "" : normalizer_.apply(gap, start);
        in_normalized_.split(
            normalizer_.empty() ? gap : normal, with_special,
            [&](std::string_view rest) { section(rest, start); }, emit);
      },
      emit);
}

const AddedToken* TextSections::find(std::string_view text) const {
  for (const auto& token : tokens_)
    if (token.text == text) return &token;
  return nullptr;
}

}  // namespace medusa
