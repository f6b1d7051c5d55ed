// The state of the grammar follows the path of each node.
#include "infer/grammar/grammar_processor.h"

#include <gtest/gtest.h>

#include "base/random.h"
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

}  // namespace
}  // namespace medusa
