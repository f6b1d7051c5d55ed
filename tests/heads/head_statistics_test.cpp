#include "heads/head_statistics.h"

#include <gtest/gtest.h>

#include "tests/heads/random_statistics.h"

namespace medusa {
namespace {

TEST(HeadStatistics, RanksAreThoseOfTheTrueTokens) {
  HeadStatistics statistics(2, 2);
  // Position i drafts answer[i + 1] and answer[i + 2].
  statistics.add_answer({{11, 7, 7, 12, /**/ 12, 7, 13, 7, /**/ 7, 7, 7, 7}}, {{10, 11, 12, 13}});
  ASSERT_EQ(statistics.num_positions(), 2);  // the third has no true token for head 1
  EXPECT_EQ(statistics.ranks(0)[0], 0);
  EXPECT_EQ(statistics.ranks(0)[1], 1);
  EXPECT_EQ(statistics.ranks(1)[0], 0);
  EXPECT_EQ(statistics.ranks(1)[1], 0);
  EXPECT_EQ(statistics.head_counts(), (std::vector<std::vector<int64_t>>{{2, 0}, {1, 1}}));
  EXPECT_EQ(statistics.path_count({0}), 2);
  EXPECT_EQ(statistics.path_count({0, 1}), 1);
  EXPECT_EQ(statistics.path_count({1}), 0);
}

TEST(HeadStatistics, AMissEndsEveryPath) {
  HeadStatistics statistics(2, 1);
  statistics.add_answer({{7, 12}}, {{10, 11, 12}});
  EXPECT_EQ(statistics.ranks(0)[0], -1);
  EXPECT_EQ(statistics.path_count({0}), 0);
  EXPECT_EQ(statistics.path_count({0, 0}), 0);
  EXPECT_EQ(statistics.head_counts()[1][0], 1);
}

TEST(HeadStatistics, AnswersWithoutACompletePositionAreNotCounted) {
  HeadStatistics statistics(2, 1);
  statistics.add_answer({{7, 7}}, {{10, 11}});
  EXPECT_EQ(statistics.num_answers(), 0);
  statistics.add_answer({{7, 7}}, {{10, 11, 12}});
  EXPECT_EQ(statistics.num_answers(), 1);
  EXPECT_EQ(statistics.answer(0), (std::pair<int64_t, int64_t>{0, 1}));
}

// The reference divided the hits of every head by one fixed number of positions, of which deep
// heads have fewer: heads that are always right were found to be right less and less often.
TEST(HeadStatistics, DeepHeadsAreNotUnderEstimatedByAnswersThatEnd) {
  HeadStatistics statistics(3, 1);
  for (const TokenId length : {2, 4, 5, 9}) {
    std::vector<TokenId> answer, drafts;
    for (TokenId i = 0; i < length; ++i) answer.push_back(10 + i);
    for (TokenId i = 0; i < length; ++i)
      for (TokenId head = 0; head < 3; ++head) drafts.push_back(10 + i + 1 + head);
    statistics.add_answer(drafts, answer);
  }
  EXPECT_GT(statistics.num_positions(), 0);
  for (const auto& counts : statistics.head_counts())
    EXPECT_EQ(counts[0], statistics.num_positions());
  EXPECT_EQ(statistics.path_count({0, 0, 0}), statistics.num_positions());
}

TEST(HeadStatistics, NoPathIsRarerThanItsExtension) {
  const HeadStatistics statistics = random_statistics(3, 3, 10, 40, 5);
  for (int32_t a = 0; a < 3; ++a)
    for (int32_t b = 0; b < 3; ++b) {
      EXPECT_GE(statistics.path_count({a}), statistics.path_count({a, b}));
      for (int32_t c = 0; c < 3; ++c)
        EXPECT_GE(statistics.path_count({a, b}), statistics.path_count({a, b, c}));
    }
}

}  // namespace
}  // namespace medusa
