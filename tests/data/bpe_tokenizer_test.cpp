#include "data/tokenizer/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/base/error_text.h"
#include "tests/data/random_text.h"
#include "tests/data/tokenizer_cases.h"

namespace medusa {
namespace {

using fixtures::error_text;
using Ids = std::vector<TokenId>;

/// a b c d e, space; ab, abc, de, and the added tokens <end> (special) and <tab> (not).
BpeParts small_merges() {
  BpeParts parts;
  parts.source = "small";
  parts.tokens = {"a", "b", "c", "d", "e", "Ġ", "ab", "abc", "de", "<end>", "<tab>"};
  parts.merges = {{"d", "e"}, {"a", "b"}, {"ab", "c"}};
  parts.added = {{9, "<end>", true}, {10, "<tab>", false}};
  parts.pre_tokenizer = PreTokenizer::named("gpt-2", "small");
  parts.eos = 9;
  return parts;
}

std::string refused(BpeParts parts) {
  return error_text([&] { BpeTokenizer{std::move(parts)}; });
}

TEST(BpeTokenizer, MergesInTheOrderOfTheList) {
  const BpeTokenizer tokenizer(small_merges());
  EXPECT_EQ(tokenizer.encode("abcde", false), (Ids{7, 8}));
  EXPECT_EQ(tokenizer.encode("abab", false), (Ids{6, 6}));
  EXPECT_EQ(tokenizer.encode("ba ab", false), (Ids{1, 0, 5, 6}));
  EXPECT_EQ(tokenizer.encode("", false), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{7, 5, 8, 9}), "abc de<end>");
}

TEST(BpeTokenizer, ReadsSpecialTokensOnlyWhenAsked) {
  const BpeTokenizer tokenizer(small_merges());
  EXPECT_EQ(tokenizer.encode("ab<end>c", true), (Ids{6, 9, 2}));
  EXPECT_EQ(tokenizer.encode("ab<end>c", false), (Ids{6, 4, 3, 2}));  // < n > are not in V
  EXPECT_EQ(tokenizer.encode("a<tab>", false), (Ids{0, 10}));         // ordinary, always found
  EXPECT_TRUE(tokenizer.is_special(9));
  EXPECT_FALSE(tokenizer.is_special(10));
  EXPECT_EQ(tokenizer.find("<end>"), 9);
  EXPECT_EQ(tokenizer.find(" "), 5);
  EXPECT_EQ(tokenizer.find("x"), std::nullopt);
  EXPECT_EQ(tokenizer.eos(), 9);
  EXPECT_EQ(tokenizer.bos(), std::nullopt);
}

TEST(BpeTokenizer, TakesWholeWordsFirstWhereTheVocabularySaysSo) {
  auto parts = small_merges();
  parts.tokens.push_back("cde");  // no merge makes it
  EXPECT_EQ(BpeTokenizer(parts).encode("cde", false), (Ids{2, 8}));
  parts.whole_words_first = true;
  EXPECT_EQ(BpeTokenizer(std::move(parts)).encode("cde", false), Ids{11});
}

TEST(BpeTokenizer, RefusesAVocabularyThatDoesNotFitTogether) {
  const std::string again = "; convert or download the tokenizer again";
  auto parts = small_merges();
  parts.tokens[3] = "a";
  EXPECT_EQ(refused(parts),
            "small: the token 'a' has the ids 0 and 3, expected every token once" + again);
  parts = small_merges();
  parts.merges.push_back({"a", "c"});
  EXPECT_EQ(
      refused(parts),
      "small: the merge 'a c' is not one of tokens, expected two tokens that make a third" + again);
  parts = small_merges();
  parts.merges.push_back({"a", "b"});
  EXPECT_EQ(refused(parts),
            "small: the merge 'a b' is there twice, expected every merge once" + again);
  parts = small_merges();
  parts.eos = 11;
  EXPECT_EQ(refused(parts), "small: the eos token is 11, expected an id below 11" + again);
  parts = small_merges();
  parts.added[0].id = 40;
  EXPECT_EQ(refused(parts),
            "small: the added token '<end>' has the id 40, expected a text and an id below 11, "
            "each once" +
                again);
  parts = small_merges();
  parts.adds_bos = true;
  EXPECT_EQ(refused(parts),
            "small: a bos token is to be added, but none is named, expected one" + again);
  EXPECT_EQ(refused({}), ": the vocabulary has 0 tokens, expected at least one" + again);
}

TEST(BpeTokenizer, FingerprintChangesWithEveryPart) {
  const auto print = [](BpeParts parts) { return BpeTokenizer(std::move(parts)).fingerprint(); };
  const auto base = print(small_merges());
  EXPECT_EQ(print(small_merges()), base);
  auto parts = small_merges();
  parts.tokens[7] = "abd";
  parts.merges[2] = {"ab", "d"};
  EXPECT_NE(print(parts), base);
  parts = small_merges();
  std::swap(parts.merges[0], parts.merges[1]);
  EXPECT_NE(print(parts), base);
  parts = small_merges();
  parts.added[1].special = true;
  EXPECT_NE(print(parts), base);
  parts = small_merges();
  parts.pre_tokenizer_text = "qwen2";
  EXPECT_NE(print(parts), base);
  parts = small_merges();
  parts.normalization = Normalization::Nfc;
  EXPECT_NE(print(parts), base);
}

/// The definition, at O(n²): the pair of lowest rank, the leftmost first, until there is none.
Ids slow_merge(const BpeParts& parts, const BpeTokenizer& tokenizer, Ids word) {
  for (;;) {
    size_t best_rank = parts.merges.size();
    size_t best = 0;
    for (size_t i = 0; i + 1 < word.size(); ++i)
      for (size_t rank = 0; rank < best_rank; ++rank)
        if (tokenizer.find(parts.merges[rank].first) == word[i] &&
            tokenizer.find(parts.merges[rank].second) == word[i + 1]) {
          best_rank = rank;
          best = i;
        }
    if (best_rank == parts.merges.size()) return word;
    word[best] = *tokenizer.find(parts.merges[best_rank].first + parts.merges[best_rank].second);
    word.erase(word.begin() + static_cast<int64_t>(best) + 1);
  }
}

TEST(BpeTokenizer, AgreesWithTheSlowDefinitionOfMerging) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    BpeParts parts;
    parts.tokens = {"a", "b", "c"};
    std::set<std::string> known(parts.tokens.begin(), parts.tokens.end());
    while (parts.merges.size() < 12) {
      const auto& left = parts.tokens[random() % parts.tokens.size()];
      const auto& right = parts.tokens[random() % parts.tokens.size()];
      const std::pair merge(left, right);
      if (std::find(parts.merges.begin(), parts.merges.end(), merge) != parts.merges.end())
        continue;
      parts.merges.push_back(merge);
      if (known.insert(merge.first + merge.second).second)
        parts.tokens.push_back(merge.first + merge.second);
    }
    std::shuffle(parts.merges.begin(), parts.merges.end(), random);
    parts.pre_tokenizer = PreTokenizer::named("gpt-2", "");
    const BpeTokenizer tokenizer(parts);
    for (int word = 0; word < 20; ++word) {
      std::string text;
      Ids bytes;
      for (size_t i = 1 + random() % 40; i > 0; --i) {
        bytes.push_back(static_cast<TokenId>(random() % 3));
        text += static_cast<char>('a' + bytes.back());
      }
      EXPECT_EQ(tokenizer.encode(text, false), slow_merge(parts, tokenizer, bytes)) << text;
    }
  }
}

/// A tokenizer, in the form that it is kept in, and whose ids are listed for it.
struct ListedBpe {
  const char* file;
  const char* ids;
};

class EveryBpe : public ::testing::TestWithParam<ListedBpe> {
 protected:
  static std::unique_ptr<Tokenizer> open() {
    const std::string name = GetParam().file;
    if (name == "demo model") return load_tokenizer(fixtures::demo_model());
    const auto file = fixtures::small_tokenizer(name);
    if (name == "qwen2") return std::make_unique<BpeTokenizer>(bpe_from_vocab(file, "qwen2"));
    return load_tokenizer(file);
  }
};

TEST_P(EveryBpe, GivesTheIdsThatThePackagesGive) {
  const auto tokenizer = open();
  const auto cases = fixtures::tokenizer_cases(GetParam().ids);
  EXPECT_EQ(cases.size(), 55U);
  for (const auto& [text, ids] : cases) {
    EXPECT_EQ(tokenizer->encode(text, false), ids) << text;
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
}

TEST_P(EveryBpe, BringsBackAnyUtf8) {
  const auto tokenizer = open();
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) {
    std::string text = fixtures::random_text(random, 60);
    // The vocabulary lacks some bytes: compare what can be written.
    std::erase_if(text, [&](char c) { return !tokenizer->find(std::string_view(&c, 1)); });
    if (!is_valid_utf8(text)) continue;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, i % 2 == 0)), text);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryBpe,
    ::testing::Values(ListedBpe{"gpt2.json", "gpt2.json"}, ListedBpe{"gpt2.gguf", "gpt2.json"},
                      ListedBpe{"llama3.json", "llama3.json"}, ListedBpe{"qwen2", "qwen2"},
                      ListedBpe{"demo model", "demo model"}),
    [](const auto& each) {
      std::string name = each.param.file;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '.' || c == ' '; }, '_');
      return name;
    });

TEST(BpeTokenizer, ReadsInvalidUtf8AsReplacementCharacters) {
  const auto tokenizer = load_tokenizer(fixtures::small_tokenizer("gpt2.json"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xFF\xE2\x82z", false)), "a\uFFFD\uFFFDz");
}

TEST(ByteAlphabet, NamesEveryByteOnce) {
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const auto token = token_of_bytes(bytes);
    EXPECT_TRUE(seen.insert(token).second);
    EXPECT_EQ(bytes_of_token(token), bytes);
  }
  EXPECT_EQ(token_of_bytes(" \n\x7F\xAD"), "ĠĊġŃ");
  EXPECT_EQ(bytes_of_token("a b"), std::nullopt);
}

}  // namespace
}  // namespace medusa
