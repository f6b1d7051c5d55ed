// The state of the grammar follows the path of each node.
#include "infer/grammar/grammar_processor.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/base/error_text.h"
#include "tests/infer/grammar/toy_grammar.h"

namespace medusa {
namespace {

using fixtures::toy_masked;
using fixtures::ToyGrammar;

/// A path that the grammar allows behind a text, without an end.
std::vector<TokenId> random_path(std::vector<TokenId> text, size_t size, uint64_t seed) {
  std::vector<TokenId> path;
  for (uint64_t i = 0; path.size() < size; ++i) {
    const auto token = static_cast<TokenId>(7 * Random(seed).uniform(RandomUse::Shuffle, 0, i));
    if (token == fixtures::kToyEnd || !fixtures::toy_allows(text, token)) continue;
    text.push_back(token);
    path.push_back(token);
  }
  return path;
}

TEST(GrammarProcessor, EveryRowIsMaskedByItsOwnPath) {
  GrammarProcessor processor(std::make_shared<ToyGrammar>());
  processor.begin(std::vector<TokenId>{5, 5});
  std::vector<TokenId> text;
  for (uint64_t step = 0; step < 30; ++step) {
    for (const size_t depth : {0U, 4U, 2U, 4U, 0U, 3U}) {
      const auto path = random_path(text, depth, 7 * step + depth);
      std::vector<TokenId> all = text;
      all.insert(all.end(), path.begin(), path.end());
      std::vector<float> row(7, 1.5F);
      processor.process(path, row);
      ASSERT_EQ(row, toy_masked(all, std::vector<float>(7, 1.5F))) << step << ", " << depth;
    }
    const TokenId next = random_path(text, 1, step)[0];
    processor.take(next);
    text.push_back(next);
  }
}

TEST(GrammarProcessor, AChildGoesOnWhereItsParentStands) {
  const auto grammar = std::make_shared<ToyGrammar>();
  GrammarProcessor processor(grammar);
  std::vector<float> row(7, 0);
  for (const std::vector<TokenId>& path : {std::vector<TokenId>{}, {1}, {1, 2}, {1, 2, 4}}) {
    row.assign(7, 0);
    processor.process(path, row);
  }
  EXPECT_EQ(grammar->taken, 3) << "one token for each node of a chain";
}

TEST(GrammarProcessor, BehindAnEndTokenTheRowStays) {
  GrammarProcessor processor(std::make_shared<ToyGrammar>());
  for (const TokenId token : {2, 5}) processor.take(token);
  std::vector<float> row(7, 0.5F);
  processor.process(std::vector<TokenId>{fixtures::kToyEnd}, row);
  EXPECT_EQ(row, std::vector<float>(7, 0.5F));
  processor.take(fixtures::kToyEnd);
}

TEST(GrammarProcessor, RowsOfTheLmHeadsPaddingCannotCome) {
  GrammarProcessor processor(std::make_shared<ToyGrammar>());
  std::vector<float> row(10, 0);
  processor.process({}, row);
  for (size_t i = 3; i < row.size(); ++i) EXPECT_LT(row[i], -1e30F) << i;
}

/// Lets the same tokens come at any place.
class FixedGrammar : public CompiledGrammar {
 public:
  FixedGrammar(int64_t vocab_size, std::vector<int32_t> mask)
      : vocab_size_(vocab_size), mask_(std::move(mask)) {}
  std::unique_ptr<GrammarMatcher> make_matcher() const override {
    return std::make_unique<Matcher>(mask_);
  }
  int64_t vocab_size() const override { return vocab_size_; }

 private:
  struct Matcher : GrammarMatcher {
    explicit Matcher(const std::vector<int32_t>& from) : mask(from) {}
    bool accept(TokenId) override { return true; }
    void rollback(int32_t) override {}
    bool has_ended() const override { return false; }
    void fill_mask(std::span<int32_t> to) override {
      std::copy(mask.begin(), mask.end(), to.begin());
    }
    std::vector<TokenId> forced_tokens(int32_t) override { return {}; }
    const std::vector<int32_t>& mask;
  };
  int64_t vocab_size_;
  std::vector<int32_t> mask_;
};

TEST(GrammarProcessor, WhereNoTokenMayComeTheGrammarIsNamed) {
  GrammarProcessor processor(std::make_shared<FixedGrammar>(40, std::vector<int32_t>{0, 0}));
  std::vector<float> row(40, 0);
  EXPECT_TRUE(fixtures::error_text([&] {
                processor.process({}, row);
              }).starts_with("the grammar has no token that could follow the answer so far, "));
}

TEST(GrammarProcessor, EachBitOfAMaskIsATokens) {
  for (const int64_t vocab_size : {1, 31, 32, 33, 64, 100, 1000}) {
    std::vector<int32_t> mask(static_cast<size_t>((vocab_size + 31) / 32));
    for (size_t word = 0; word < mask.size(); ++word) {
      const double u = Random(1).uniform(RandomUse::Shuffle, 0, word);
      const auto some = static_cast<uint32_t>(u * 4294967295.0);
      mask[word] = static_cast<int32_t>(word % 4 == 1 ? ~0U : word % 4 == 2 ? 0U : some);
    }
    std::vector<float> row, expected;
    for (int64_t i = 0; i < vocab_size + 5; ++i) {
      row.push_back(static_cast<float>(i));
      const auto word = static_cast<size_t>(i / 32);
      const bool may_come =
          i < vocab_size && (static_cast<uint32_t>(mask[word]) >> (i % 32) & 1U) != 0;
      expected.push_back(may_come ? row.back() : -std::numeric_limits<float>::infinity());
    }
    GrammarProcessor(std::make_shared<FixedGrammar>(vocab_size, mask)).process({}, row);
    EXPECT_EQ(row, expected) << vocab_size;
  }
}

}  // namespace
}  // namespace medusa
