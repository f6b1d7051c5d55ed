#include "infer/row_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/infer/random_rows.h"
#include "tests/reference/row_passes.h"

namespace medusa {
namespace {

using fixtures::kRowSizes;
using fixtures::random_row;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(RowMath, ThePeakIsTheFirstOfTheLargestWhereverItStands) {
  for (const size_t size : kRowSizes) {
    std::vector<float> row = random_row(size, size, 30);
    const auto largest = std::max_element(row.begin(), row.end());
    EXPECT_EQ(row_peak(row).value, *largest);
    EXPECT_EQ(row_peak(row).place, static_cast<size_t>(largest - row.begin()));
    for (const size_t place : {size_t{0}, size / 2, size - 1}) {
      std::vector<float> peaked = row;
      peaked[place] = peaked.back() = 100;
      EXPECT_EQ(row_peak(peaked).value, 100) << size << ", " << place;
      EXPECT_EQ(row_peak(peaked).place, place) << size;
    }
  }
  EXPECT_EQ(row_peak(std::vector<float>(20, -5)).value, -5) << "all negative";
  EXPECT_EQ(row_peak(std::vector<float>(5000, 3)).place, 0) << "all equal";
  EXPECT_THROW(row_peak({}), std::logic_error);
}

TEST(RowMath, ANumberThatIsNoneIsNotThePeak) {
  std::vector<float> row = random_row(5000, 1, 30);
  row[4000] = 50;
  row[0] = row[17] = row[4999] = std::nanf("");
  EXPECT_EQ(row_peak(row).place, 4000);
  EXPECT_EQ(row_peak(std::vector<float>(40, std::nanf(""))).value, -kInfinity);
}

TEST(RowMath, ExpIsRightWithin3e7AllTheWayDown) {
  std::vector<float> row;
  for (float x = 0; x >= -87; x -= 0.0007F) row.push_back(x);
  row.push_back(-87);
  RowWeights weights;
  weights.set(row, 1);
  double worst = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double exact = std::exp(static_cast<double>(row[i]));
    worst = std::max(worst, std::abs(static_cast<double>(weights.all()[i]) - exact) / exact);
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_EQ(weights.all()[0], 1);
}

TEST(RowMath, ExpBelowTheLastNormalFloatIsZero) {
  const std::vector<float> row{0, -87.01F, -1000, -kInfinity};
  RowWeights weights;
  weights.set(row, 1);
  EXPECT_EQ(weights.sum(), 1);
  EXPECT_TRUE(std::ranges::equal(weights.all(), std::vector<float>{1, 0, 0, 0}));
  const SoftmaxSums sums = softmax_sums(row, 1);
  EXPECT_EQ(sums.sum, 1);
  EXPECT_EQ(sums.weighted, 0);
}

TEST(RowMath, SumsAgreeWithDouble) {
  for (const size_t size : kRowSizes)
    for (const float scale : {1.0F, 1.6F, 0.25F}) {
      const std::vector<float> row = random_row(size, size + 1, 30);
      const float max = row_peak(row).value;
      double sum = 0, weighted = 0;
      for (const float value : row) {
        const double x =
            (static_cast<double>(value) - static_cast<double>(max)) * static_cast<double>(scale);
        sum += std::exp(x);
        weighted += std::exp(x) * x;
      }
      const SoftmaxSums sums = softmax_sums(row, scale);
      EXPECT_EQ(sums.max, max);
      EXPECT_NEAR(sums.sum / sum, 1, 2e-6) << size;
      EXPECT_NEAR(sums.weighted, weighted, 4e-6 * std::abs(weighted)) << size;
      EXPECT_NEAR(sums.entropy(), std::log(sum) - weighted / sum, 1e-5) << size;
    }
}

TEST(RowMath, EveryBitIsTheReferencesForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (const size_t size : kRowSizes)
      for (const float scale : {1.0F, 1 / 0.7F, 0.01F}) {
        const std::vector<float> row = random_row(size, size + 2, 90);
        const SoftmaxSums expected = reference::softmax_sums(row, scale);
        for (ThreadPool* used : {&pool, static_cast<ThreadPool*>(nullptr)}) {
          const SoftmaxSums sums = softmax_sums(row, scale, used);
          EXPECT_EQ(sums.sum, expected.sum) << size << ", " << threads;
          EXPECT_EQ(sums.weighted, expected.weighted) << size << ", " << threads;
          RowWeights weights;
          weights.set(row, scale, used);
          EXPECT_EQ(weights.sum(), expected.sum) << size << ", " << threads;
          for (size_t i = 0; i < size; ++i)
            ASSERT_EQ(weights.all()[i], reference::weight((row[i] - expected.max) * scale))
                << size << ", " << i;
        }
      }
  }
}

TEST(RowMath, CollectFindsAllFromAWeightOnAndNoOthers) {
  for (const size_t size : kRowSizes) {
    RowWeights weights;
    weights.set(random_row(70000, 5, 40), 1);  // what was there is void
    weights.set(random_row(size, size + 3, 40), 1);
    std::vector<Weighted> found;
    for (const float floor : {1.0F, 0.1F, 1e-3F, 1e-12F}) {
      weights.collect(floor, found);
      size_t next = 0;
      for (size_t i = 0; i < size; ++i) {
        if (weights.all()[i] < floor) continue;
        ASSERT_LT(next, found.size()) << size << ", " << floor;
        EXPECT_EQ(found[next].id, static_cast<int32_t>(i));
        EXPECT_EQ(found[next++].weight, weights.all()[i]);
      }
      EXPECT_EQ(next, found.size()) << size << ", " << floor;
    }
  }
}

TEST(RowMath, SumsOfARowThatIsNotFiniteAreNot) {
  for (const float odd : {std::nanf(""), -std::nanf(""), kInfinity})
    for (const size_t place : {0U, 20U, 4999U}) {
      std::vector<float> row = random_row(5000, 1, 30);
      row[place] = odd;
      EXPECT_FALSE(std::isfinite(softmax_sums(row, 1).sum)) << place;
    }
}

}  // namespace
}  // namespace medusa
