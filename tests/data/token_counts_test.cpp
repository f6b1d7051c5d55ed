#include "data/dataset/token_counts.h"

#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"
#include "tests/data/dataset_samples.h"

namespace medusa {
namespace {

TokenCounts counted(std::vector<TokenId> tokens) {
  TokenCounts counts(8);
  counts.add(tokens);
  return counts;
}

TEST(TokenCounts, OrdersByFrequencyThenById) {
  const auto counts = counted({5, 5, 5, 2, 2, 7, 7, 1});
  EXPECT_EQ(counts.total(), 8);
  EXPECT_EQ(counts.most_frequent(4), (std::vector<TokenId>{5, 2, 7, 1}));
  EXPECT_EQ(counts.most_frequent(1), (std::vector<TokenId>{5}));
  EXPECT_EQ(counts.most_frequent(8), (std::vector<TokenId>{5, 2, 7, 1, 0, 3, 4, 6}));
}

TEST(TokenCounts, AlwaysKeepsTheTokensAskedFor) {
  const auto counts = counted({5, 5, 5, 2, 2, 7, 7, 1});
  const std::vector<TokenId> eos = {6, 6};
  EXPECT_EQ(counts.most_frequent(3, eos), (std::vector<TokenId>{5, 2, 6}));
  EXPECT_EQ(counts.most_frequent(1, eos), (std::vector<TokenId>{6}));
  EXPECT_EQ(counts.most_frequent(2, std::vector<TokenId>{5}), (std::vector<TokenId>{5, 2}));
}

TEST(TokenCounts, SaysHowMuchOfTheTextIsCovered) {
  const auto counts = counted({5, 5, 5, 2, 2, 7, 7, 1});
  EXPECT_EQ(counts.coverage(std::vector<TokenId>{5, 1}), 0.5);
  EXPECT_EQ(TokenCounts(8).coverage(std::vector<TokenId>{5}), 0);
}

TEST(TokenCounts, CountsTheAnswersOfTheChosenSamplesAsOftenAsTheyAreNamed) {
  const fixtures::TempFolder folder;
  fixtures::write_small_dataset(folder.path(), 6, 2);
  const DatasetReader dataset(folder.path());
  const auto counts = count_answer_tokens(dataset, std::vector<int64_t>{1, 3, 5, 3});
  TokenCounts expected(100);
  for (const int64_t i : {1, 3, 5, 3}) {
    const Sample sample = fixtures::small_sample(i);
    expected.add(std::span(sample.tokens).subspan(static_cast<size_t>(sample.answer_start)));
  }
  EXPECT_EQ(counts.total(), expected.total());
  EXPECT_EQ(counts.most_frequent(100), expected.most_frequent(100));
}

}  // namespace
}  // namespace medusa
