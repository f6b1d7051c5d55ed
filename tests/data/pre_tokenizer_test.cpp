#include "data/tokenizer/pre_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/tokenizer/added_tokens.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

using fixtures::error_text;
using Words = std::vector<std::string>;

Words cut(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Words words;
  pre_tokenizer.split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words cut(std::string_view name, std::string_view text) {
  return cut(PreTokenizer::named(name, "test"), text);
}

TEST(PreTokenizer, CutsAsEachFamilyDoes) {
  const std::string text = "It's 1234  x\n\n y";
  EXPECT_EQ(cut("gpt-2", text), (Words{"It", "'s", " 1234", " ", " x", "\n\n", " y"}));
  EXPECT_EQ(cut("smollm", text),
            (Words{"It", "'s", " ", "1", "2", "3", "4", " ", " x", "\n\n", " y"}));
  EXPECT_EQ(cut("qwen2", text),
            (Words{"It", "'s", " ", "1", "2", "3", "4", " ", " x", "\n\n", " y"}));
  EXPECT_EQ(cut("llama-bpe", text), (Words{"It", "'s", " ", "123", "4", " ", " x", "\n\n", " y"}));
  EXPECT_EQ(cut("default", "a+b1234"), (Words{"a", "+", "b", "123", "4"}));
  EXPECT_EQ(cut("qwen2", "DON'T"), (Words{"DON", "'T"}));
  EXPECT_EQ(cut("gpt-2", "DON'T"), (Words{"DON", "'", "T"}));
}

TEST(PreTokenizer, LookaheadEndsWithThePieceOfTheStepBefore) {
  // The spaces before a digit are a piece of their own, so none is left over for the digit.
  EXPECT_EQ(cut("smollm", "a   7"), (Words{"a", "   ", "7"}));
  EXPECT_EQ(cut("gpt-2", "a   7"), (Words{"a", "  ", " 7"}));
}

TEST(PreTokenizer, WhiteSpaceIsUnicodesAndNotMore) {
  EXPECT_EQ(cut("gpt-2", "a\u3000\u0085"), (Words{"a", "\u3000\u0085"}));
  // The Mongolian vowel separator is a mark: the space before it belongs to it.
  EXPECT_EQ(cut("gpt-2", "a  \u180Eb"), (Words{"a", " ", " \u180E", "b"}));
}

TEST(PreTokenizer, DropsWhatASplitRemoves) {
  PreTokenizer matches;
  matches.add_split({Regex("-+", "test"), true, false});
  EXPECT_EQ(cut(matches, "a--b-"), (Words{"a", "b"}));
  PreTokenizer gaps;
  gaps.add_split({Regex("[a-z]+", "test"), false, true});
  EXPECT_EQ(cut(gaps, "a--b-"), (Words{"a", "b"}));
  PreTokenizer prefix;
  prefix.add_byte_level(true, true, "test");
  EXPECT_EQ(cut(prefix, "a b"), (Words{" a", " b"}));
}

TEST(PreTokenizer, RefusesUnknownNamesAndBrokenPatterns) {
  EXPECT_EQ(
      error_text([] { PreTokenizer::named("bloom", "m.gguf"); }),
      "m.gguf: tokenizer.ggml.pre is 'bloom', expected one of codeshell, command-r, dbrx, "
      "deepseek-r1-qwen, default, falcon3, gpt-2, jais, llama-bpe, llama-v3, llama3, mpt, olmo, "
      "qwen2, refact, smaug-bpe, smollm, stablelm2, starcoder, tekken; use a model with one of "
      "these");
  EXPECT_EQ(
      error_text([] { Regex("a(b", "t.json"); }),
      "t.json: the pattern 'a(b' cannot be read (missing closing parenthesis); expected a regular "
      "expression, download the tokenizer again");
}

TEST(Regex, GivesUpOnAPatternThatIsTooCostly) {
  const Regex bad("(a+)+$", "t.json");
  Regex::Scratch scratch;
  EXPECT_EQ(
      error_text([&] { (void)bad.find(std::string(40, 'a') + "!", 0, scratch); }),
      "t.json: its pattern fails on a text of 41 bytes (match limit exceeded); expected one that "
      "can be matched, split the text into shorter ones");
}

std::string pieces(const std::vector<AddedToken>& tokens, std::string_view text,
                   bool special = true) {
  std::string out;
  AddedTokens(tokens).split(
      text, special, [&](std::string_view gap) { out += fmt::format("({})", gap); },
      [&](const AddedToken& token) { out += std::to_string(token.id); });
  return out;
}

TEST(AddedTokens, TakesTheLeftmostAndOfThoseTheLongest) {
  EXPECT_EQ(pieces({{1, "ab", false}, {2, "abc", false}, {3, "bc", false}}, "xabcbcab"), "(x)231");
  EXPECT_EQ(pieces({{1, "<s>", true}, {2, "<", false}}, "<s>"), "1");
  EXPECT_EQ(pieces({{1, "<s>", true}, {2, "<", false}}, "<s>", false), "2(s>)");
  EXPECT_EQ(pieces({}, "abc"), "(abc)");
}

TEST(AddedTokens, HonorsStrippingAndWholeWords) {
  AddedToken token{1, "[M]", true};
  token.lstrip = true;
  EXPECT_EQ(pieces({token}, "a \u3000[M] b [M]"), "(a)1( b)1");
  token.lstrip = false;
  token.rstrip = true;
  EXPECT_EQ(pieces({token}, "a [M] \n[M]b"), "(a )11(b)");
  AddedToken word{2, "art", false};
  word.single_word = true;
  EXPECT_EQ(pieces({word}, "art party éart art"), "2( party éart )2");
}

}  // namespace
}  // namespace medusa
