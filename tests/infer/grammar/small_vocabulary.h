// A small vocabulary for the grammar library, and what tests ask of its matchers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "infer/grammar/grammar.h"

namespace medusa {

inline constexpr TokenId kEnd = 256, kNoText = 257;

/// A token for each byte, an end, one without text, and some of several bytes.
inline GrammarVocabulary vocabulary() {
  GrammarVocabulary out;
  for (int byte = 0; byte < 256; ++byte) out.bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* each : {"", "", "ab", "{\"", "\": ", "\", \"", "true", "}", "bc", "aab"})
    out.bytes.emplace_back(each);
  out.ends = {kEnd};
  return out;
}

class Xgrammar : public testing::Test {
 protected:
  std::shared_ptr<const CompiledGrammar> compile(GrammarKind kind, const std::string& text) {
    if (!compiler_) compiler_ = make_grammar_compiler(vocabulary());
    return compiler_->compile({kind, text});
  }
  std::unique_ptr<GrammarMatcher> matcher(GrammarKind kind, const std::string& text) {
    return compile(kind, text)->make_matcher();
  }
  static std::vector<TokenId> allowed(GrammarMatcher& matcher) {
    const auto size = std::ssize(vocabulary().bytes);
    std::vector<int32_t> mask(static_cast<size_t>(size + 31) / 32);
    matcher.fill_mask(mask);
    std::vector<TokenId> out;
    for (TokenId id = 0; id < size; ++id)
      if ((static_cast<uint32_t>(mask[static_cast<size_t>(id / 32)]) >> (id % 32) & 1U) != 0)
        out.push_back(id);
    return out;
  }
  static std::string texts(const std::vector<TokenId>& tokens) {
    const GrammarVocabulary all = vocabulary();
    std::string out;
    for (const TokenId id : tokens)
      out += (id == kEnd ? "<end>" : all.bytes.at(static_cast<size_t>(id))) + " ";
    return out;
  }
  /// Follows the masks by chance to an end; empty: it did not come to one.
  static std::string random_text(GrammarMatcher& matcher, uint64_t seed) {
    std::string out;
    for (int64_t i = 0; i < 400; ++i) {
      const auto tokens = allowed(matcher);
      EXPECT_FALSE(tokens.empty());
      const double u = Random(seed).uniform(RandomUse::Shuffle, i);
      const bool may_end = tokens.back() == kEnd || std::count(tokens.begin(), tokens.end(), kEnd);
      const TokenId next =
          may_end ? kEnd : tokens[static_cast<size_t>(u * static_cast<double>(tokens.size()))];
      EXPECT_NE(next, kNoText);
      EXPECT_TRUE(matcher.accept(next));
      if (matcher.has_ended()) return out;
      out += vocabulary().bytes[static_cast<size_t>(next)];
    }
    return {};
  }

  std::unique_ptr<GrammarCompiler> compiler_;
};

}  // namespace medusa
