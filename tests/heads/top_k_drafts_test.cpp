#include "heads/top_k_drafts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace medusa {
namespace {

/// Sorting everything: the reference.
std::vector<int32_t> sorted_rows(const std::vector<float>& logits, size_t n) {
  std::vector<int32_t> rows(logits.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  rows.resize(n);
  return rows;
}

std::vector<float> random_logits(size_t size, uint64_t seed, double steps) {
  std::vector<float> logits;
  for (size_t i = 0; i < size; ++i) {
    const double draw = Random(seed).uniform(RandomUse::Init, static_cast<int64_t>(i));
    logits.push_back(static_cast<float>(std::floor((draw * 20 - 10) * steps) / steps));
  }
  return logits;
}

TEST(TopKDrafts, AreThoseOfSortingTheRow) {
  for (const size_t size : {10, 15, 16, 64, 65, 130, 1000, 8192})
    for (const double steps : {1e6, 0.5}) {  // the second has many equal logits
      const auto logits = random_logits(size, size, steps);
      for (const size_t kept : {size_t{1}, size_t{10}}) {
        SCOPED_TRACE(testing::Message() << size << " logits, best " << kept);
        std::vector<ScoredRow> best(kept);
        top_k_drafts(logits, best);
        const auto expected = sorted_rows(logits, kept);
        for (size_t i = 0; i < kept; ++i) {
          EXPECT_EQ(best[i].row, expected[i]) << i;
          EXPECT_EQ(best[i].logit, logits[static_cast<size_t>(expected[i])]) << i;
        }
      }
    }
}

TEST(TopKDrafts, WorkOnAscendingAndConstantRows) {
  std::vector<float> rising(200), flat(200, 2.5F);
  std::iota(rising.begin(), rising.end(), -100.0F);
  std::vector<ScoredRow> best(3);
  top_k_drafts(rising, best);
  EXPECT_EQ(best[0].row, 199);
  EXPECT_EQ(best[2].row, 197);
  top_k_drafts(flat, best);
  EXPECT_EQ(best[0].row, 0);
  EXPECT_EQ(best[2].row, 2);
}

TEST(TopKDrafts, LogOfTheSumIsExact) {
  for (const size_t size : {1, 15, 16, 17, 8192}) {
    const auto logits = random_logits(size, 3, 1e6);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    std::vector<ScoredRow> best(1);
    EXPECT_NEAR(top_k_drafts(logits, best), std::log(sum), 1e-5) << size;
  }
}

}  // namespace
}  // namespace medusa
