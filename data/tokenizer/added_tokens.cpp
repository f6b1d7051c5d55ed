#include "data/tokenizer/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace medusa {
namespace {

/// Letters, digits, marks and joining punctuation: what \w matches.
bool is_word_character(uint32_t codepoint) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(codepoint))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word_character(read_utf8_backwards(text.substr(0, begin)).codepoint))
    return false;
  return end == text.size() || !is_word_character(read_utf8(text.substr(end)).codepoint);
}

size_t skip_space_forwards(std::string_view text, size_t at) {
  while (at < text.size()) {
    const auto step = read_utf8(text.substr(at));
    if (!is_white_space(step.codepoint)) break;
    at += step.size;
  }
  return at;
}

size_t skip_space_backwards(std::string_view text, size_t at, size_t limit) {
  while (at > limit) {
    const auto step = read_utf8_backwards(text.substr(limit, at - limit));
    if (!is_white_space(step.codepoint)) break;
    at -= step.size;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    MEDUSA_ASSERT(!tokens_[i].text.empty(), tokens_[i].id);
    by_first_byte_[static_cast<uint8_t>(tokens_[i].text[0])].push_back(i);
  }
  for (auto& indices : by_first_byte_)
    std::stable_sort(indices.begin(), indices.end(), [&](size_t a, size_t b) {
      return tokens_[a].text.size() > tokens_[b].text.size();
    });
}

const AddedToken* AddedTokens::match_at(std::string_view text, size_t at, bool with_special) const {
  for (const size_t i : by_first_byte_[static_cast<uint8_t>(text[at])]) {
    const auto& token = tokens_[i];
    if (token.special && !with_special) continue;
    if (!text.substr(at).starts_with(token.text)) continue;
    if (token.single_word && !stands_alone(text, at, at + token.text.size())) continue;
    return &token;
  }
  return nullptr;
}

void AddedTokens::split(std::string_view text, bool with_special,
                        const std::function<void(std::string_view)>& gap,
                        const std::function<void(const AddedToken&)>& token) const {
  size_t done = 0;  // everything before it has been handed over
  for (size_t at = 0; at < text.size();) {
    const AddedToken* found = match_at(text, at, with_special);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const size_t begin = found->lstrip ? skip_space_backwards(text, at, done) : at;
    if (begin > done) gap(text.substr(done, begin - done));
    token(*found);
    at += found->text.size();
    if (found->rstrip) at = skip_space_forwards(text, at);
    done = at;
  }
  if (done < text.size()) gap(text.substr(done));
}

}  // namespace medusa
