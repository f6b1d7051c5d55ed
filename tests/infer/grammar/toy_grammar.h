// A grammar over the toy's seven tokens, without a library: after a token comes one of the next
// three, in a circle, but after a 4 a 5 alone, and the end token 6 ends the text.
#pragma once

#include <algorithm>
#include <limits>

#include "infer/grammar/grammar.h"
#include "tests/infer/toy_model.h"

namespace medusa::fixtures {

constexpr TokenId kToyEnd = 6;

/// Whether a token may stand behind a text.
inline bool toy_allows(std::span<const TokenId> text, TokenId token) {
  if (text.empty()) return token < 3;
  if (text.back() == 4) return token == 5;
  const auto vocabulary = static_cast<TokenId>(kToyVocab);
  const TokenId ahead = (token - text.back() + vocabulary) % vocabulary;
  return ahead >= 1 && ahead <= 3;
}

/// The row without the tokens that may not follow.
inline std::vector<float> toy_masked(std::span<const TokenId> text, std::vector<float> row) {
  for (TokenId token = 0; token < static_cast<TokenId>(row.size()); ++token)
    if (!toy_allows(text, token))
      row[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  return row;
}

/// Counts the tokens that its matchers take, and fails where a text has ended.
class ToyGrammar : public CompiledGrammar {
 public:
  std::unique_ptr<GrammarMatcher> make_matcher() const override {
    return std::make_unique<Matcher>(*this);
  }
  int64_t vocab_size() const override { return kToyVocab; }

  mutable int64_t taken = 0;

 private:
  class Matcher : public GrammarMatcher {
   public:
    explicit Matcher(const ToyGrammar& grammar) : grammar_(grammar) {}
    bool accept(TokenId token) override {
      if (has_ended() || !toy_allows(text_, token)) return false;
      ++grammar_.taken;
      text_.push_back(token);
      return true;
    }
    void rollback(int32_t num_tokens) override {
      MEDUSA_ASSERT(num_tokens >= 1 && num_tokens <= std::ssize(text_), num_tokens);
      text_.erase(text_.end() - num_tokens, text_.end());
    }
    bool has_ended() const override { return !text_.empty() && text_.back() == kToyEnd; }
    void fill_mask(std::span<int32_t> mask) override {
      MEDUSA_ASSERT(!has_ended() && mask.size() == 1, mask.size());
      mask[0] = 0;
      for (TokenId token = 0; token < static_cast<TokenId>(kToyVocab); ++token)
        if (toy_allows(text_, token)) mask[0] |= 1 << token;
    }
    std::vector<TokenId> forced_tokens(int32_t most) override {
      if (most < 1 || text_.empty() || text_.back() != 4) return {};
      return {5};
    }

   private:
    const ToyGrammar& grammar_;
    std::vector<TokenId> text_;
  };
};

}  // namespace medusa::fixtures
