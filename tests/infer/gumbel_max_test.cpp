#include "infer/gumbel_max.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/infer/random_rows.h"
#include "tests/reference/row_passes.h"

namespace medusa {
namespace {

using fixtures::kRowSizes;
using fixtures::random_row;

TEST(GumbelMax, TheWinnerIsTheReferencesForAnyNumberOfThreads) {
  ThreadPool two(2), five(5);
  int64_t not_the_best = 0;
  for (const size_t size : kRowSizes)
    for (const float scale : {0.01F, 0.3F, 1 / 0.7F, 20.0F}) {  // from flat to steep
      const std::vector<float> row = random_row(size, size, 40);
      for (int64_t position = 0; position < 12; ++position) {
        const TokenId expected =
            reference::draw_from_row(row, scale, Random(3), RandomUse::Accept, position);
        not_the_best += expected == static_cast<TokenId>(row_peak(row).place) ? 0 : 1;
        for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &two, &five})
          ASSERT_EQ(
              draw_from_row(row, scale, Random(3), RandomUse::Accept, position, threads).token,
              expected)
              << size << " tokens, scale " << scale << ", position " << position;
      }
    }
  EXPECT_GT(not_the_best, 200);  // of 768
}

// The bounds that rule tokens out without a logarithm must hold in their last bit.
TEST(GumbelMax, NobodyWhoWouldWinIsRuledOut) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const std::vector<float> row(kRowSizes.back() / 16, 1.0F);  // all equally probable
    ASSERT_EQ(draw_from_row(row, 1, Random(seed), RandomUse::Draft, 9).token,
              reference::draw_from_row(row, 1, Random(seed), RandomUse::Draft, 9))
        << seed;
  }
}

// A pool may run fewer of its threads than a moment ago.
TEST(GumbelMax, TheSumIsTheSameBitsForAnyNumberOfThreads) {
  ThreadPool two(2), five(5);
  for (const size_t size : kRowSizes) {
    const std::vector<float> row = random_row(size, size, 30);
    const double alone = draw_from_row(row, 1.3F, Random(1), RandomUse::Accept, 3).sum;
    for (ThreadPool* pool : {&two, &five})
      EXPECT_EQ(draw_from_row(row, 1.3F, Random(1), RandomUse::Accept, 3, pool).sum, alone) << size;
  }
}

TEST(GumbelMax, ARowThatIsNotFiniteIsTold) {
  for (const size_t place : {0U, 40U, 4999U}) {
    std::vector<float> row = random_row(5000, 1, 30);
    row[place] = std::nanf("");
    EXPECT_FALSE(std::isfinite(draw_from_row(row, 1, Random(1), RandomUse::Accept, 0).sum));
  }
  const RowDraw drawn = draw_from_row(random_row(5000, 1, 30), 1, Random(1), RandomUse::Accept, 0);
  EXPECT_TRUE(std::isfinite(drawn.sum));
  EXPECT_TRUE(std::isfinite(drawn.max));
}

}  // namespace
}  // namespace medusa
