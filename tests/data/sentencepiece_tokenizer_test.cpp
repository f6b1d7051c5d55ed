#include "data/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "data/tokenizer/tokenizer_files.h"
#include "tests/base/error_text.h"
#include "tests/data/random_text.h"
#include "tests/data/tokenizer_cases.h"

namespace medusa {
namespace {

using fixtures::error_text;
using Ids = std::vector<TokenId>;

SentencePieceParts small_pieces() {
  SentencePieceParts parts;
  parts.source = "small";
  parts.pieces = {"<unk>", "</s>", "▁", "a", "b", "ab", "▁a", "ba"};
  parts.scores = {0, 0, -10, -11, -12, -2, -1, -3};
  parts.added = {{0, "<unk>", true}, {1, "</s>", true}};
  parts.unknown = 0;
  parts.eos = 1;
  return parts;
}

std::string refused(SentencePieceParts parts) {
  return error_text([&] { SentencePieceTokenizer{std::move(parts)}; });
}

TEST(SentencePieceTokenizer, MergesTheHighestScoreFirst) {
  const SentencePieceTokenizer tokenizer(small_pieces());
  EXPECT_EQ(tokenizer.encode("ab", false), (Ids{6, 4}));  // ▁a before ab
  EXPECT_EQ(tokenizer.encode("bab", false), (Ids{2, 4, 5}));
  EXPECT_EQ(tokenizer.encode("a?", false), (Ids{6, 0}));
  EXPECT_EQ(tokenizer.encode("a</s>b", true), (Ids{6, 1, 2, 4}));
  EXPECT_EQ(tokenizer.encode("", false), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{6, 4, 1}), " ab</s>");
  EXPECT_FALSE(tokenizer.adds_bos());  // there is none
  auto parts = small_pieces();
  parts.normalizer = llama_normalizer(false);
  EXPECT_EQ(SentencePieceTokenizer(std::move(parts)).encode("ab", false), Ids{5});
}

TEST(SentencePieceTokenizer, MergesInTheOrderOfAListWhereThereIsOne) {
  auto parts = small_pieces();
  parts.rule = PieceRule::Merges;
  parts.merges = {{"a", "b"}, {"▁", "a"}};
  EXPECT_EQ(SentencePieceTokenizer(parts).encode("ab", false), (Ids{2, 5}));
  parts.whole_words_first = true;
  parts.pieces.push_back("▁ab");
  EXPECT_EQ(SentencePieceTokenizer(std::move(parts)).encode("ab", false), Ids{8});
}

TEST(SentencePieceTokenizer, CharactersMayBePartOfAPieceAndNoneThemselves) {
  auto parts = small_pieces();
  parts.pieces.insert(parts.pieces.end(), {"ac", "cé"});
  parts.scores.insert(parts.scores.end(), {-1.5, -1.7});
  const SentencePieceTokenizer tokenizer(std::move(parts));
  EXPECT_EQ(tokenizer.encode("bac", false), (Ids{2, 4, 8}));
  EXPECT_EQ(tokenizer.encode("bcé", false), (Ids{2, 4, 9}));
  EXPECT_EQ(tokenizer.encode("bcc", false), (Ids{2, 4, 0}));
}

TEST(SentencePieceTokenizer, RefusesAVocabularyThatDoesNotFitTogether) {
  const std::string again = "; convert or download the tokenizer again";
  auto parts = small_pieces();
  parts.scores.pop_back();
  EXPECT_EQ(
      refused(parts),
      "small: the vocabulary has 8 pieces and 7 scores, expected a score for each piece" + again);
  parts = small_pieces();
  parts.pieces[4] = "a";
  EXPECT_EQ(refused(parts),
            "small: the piece 'a' has the ids 3 and 4, expected every piece once" + again);
  parts = small_pieces();
  parts.byte_pieces = {7};
  EXPECT_EQ(
      refused(parts),
      "small: the byte piece 'ba' has the id 7, expected <0x00> to <0xFF>, each once" + again);
  parts = small_pieces();
  parts.unknown.reset();
  EXPECT_EQ(
      refused(parts),
      "small: neither all 256 byte pieces nor an unknown token are there, expected one of them" +
          again);
  parts = small_pieces();
  parts.scores[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refused(parts), "small: the score of 'a' is nan, expected a number" + again);
  parts = small_pieces();
  parts.pieces[5] = std::string(1025, 'a');
  EXPECT_EQ(refused(parts),
            "small: the piece with the id 5 has 1025 bytes, expected at most 1024" + again);
  parts = small_pieces();
  parts.rule = PieceRule::Merges;
  parts.merges = {{"a", "c"}};
  EXPECT_EQ(
      refused(parts),
      "small: the merge 'a c' is not one of tokens, expected two tokens that make a third" + again);
  parts.merges = {{"a", "b"}, {"a", "b"}};
  EXPECT_EQ(refused(parts),
            "small: the merge 'a b' is there twice, expected every merge once" + again);
  parts = small_pieces();
  parts.eos = 8;
  EXPECT_EQ(refused(parts), "small: a special token is 8, expected an id below 8" + again);
}

TEST(SentencePieceTokenizer, GivesTheIdsThatThePackageGives) {
  for (const char* form : {"bpe.gguf", "bpe.model"}) {
    const auto tokenizer = load_tokenizer(fixtures::small_tokenizer(form));
    const auto cases = fixtures::tokenizer_cases("bpe.model");
    EXPECT_EQ(cases.size(), 55U);
    for (const auto& [text, ids] : cases) EXPECT_EQ(tokenizer->encode(text, false), ids) << text;
    EXPECT_EQ(tokenizer->bos(), 1);
    EXPECT_TRUE(tokenizer->adds_bos());
  }
}

TEST(SentencePieceTokenizer, BringsBackAnyUtf8AfterOneSpace) {
  const auto tokenizer = load_tokenizer(MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf");
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    const std::string text = fmt::format("x{}", fixtures::random_text(random, 40));
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false)), fmt::format(" {}", text));
  }
}

}  // namespace
}  // namespace medusa
