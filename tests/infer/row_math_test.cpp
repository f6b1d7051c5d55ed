#include "infer/row_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace medusa {
namespace {

const std::vector<size_t> kSizes{1, 2, 15, 16, 17, 31, 33, 1000, 49152};  // and not of 16

std::vector<float> random_row(size_t size, uint64_t seed, double width) {
  std::vector<float> row;
  for (size_t i = 0; i < size; ++i)
    row.push_back(static_cast<float>(width * (Random(seed).uniform(RandomUse::Init, 0, i) - 0.5)));
  return row;
}

TEST(RowMath, MaxIsTheLargestWhereverItStands) {
  for (const size_t size : kSizes) {
    std::vector<float> row = random_row(size, size, 30);
    EXPECT_EQ(row_max(row), *std::max_element(row.begin(), row.end()));
    for (const size_t place : {size_t{0}, size / 2, size - 1}) {
      std::vector<float> peaked = row;
      peaked[place] = 100;
      EXPECT_EQ(row_max(peaked), 100) << size << ", " << place;
    }
  }
  EXPECT_EQ(row_max(std::vector<float>(20, -5)), -5) << "all negative";
  EXPECT_THROW(row_max({}), std::logic_error);
}

TEST(RowMath, ExpIsRightWithin3e7AllTheWayDown) {
  std::vector<float> row, out;
  for (float x = 0; x >= -87; x -= 0.0007F) row.push_back(x);
  row.push_back(-87);
  out.resize(row.size());
  row_exp(row, 0, 1, out);
  double worst = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double exact = std::exp(static_cast<double>(row[i]));
    worst = std::max(worst, std::abs(static_cast<double>(out[i]) - exact) / exact);
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_EQ(out[0], 1);
}

TEST(RowMath, ExpBelowTheLastNormalFloatIsZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> row{0, -87.01F, -1000, -infinity};
  std::vector<float> out(row.size(), 9);
  EXPECT_EQ(row_exp(row, 0, 1, out), 1);
  EXPECT_EQ(out, (std::vector<float>{1, 0, 0, 0}));
  const ExpSums sums = row_exp_sums(row, 0, 1);
  EXPECT_EQ(sums.sum, 1);
  EXPECT_EQ(sums.weighted, 0);
}

TEST(RowMath, SumsAgreeWithDouble) {
  for (const size_t size : kSizes)
    for (const float scale : {1.0F, 1.6F, 0.25F}) {
      const std::vector<float> row = random_row(size, size + 1, 30);
      const float max = row_max(row);
      double sum = 0, weighted = 0;
      for (const float value : row) {
        const double x =
            (static_cast<double>(value) - static_cast<double>(max)) * static_cast<double>(scale);
        sum += std::exp(x);
        weighted += std::exp(x) * x;
      }
      std::vector<float> out(size);
      EXPECT_NEAR(row_exp(row, max, scale, out) / sum, 1, 2e-6) << size;
      const ExpSums sums = row_exp_sums(row, max, scale);
      EXPECT_NEAR(sums.sum / sum, 1, 2e-6) << size;
      EXPECT_NEAR(sums.weighted, weighted, 4e-6 * std::abs(weighted)) << size;
    }
}

TEST(RowMath, ATermIsTheSameBitsInTheBodyAndInTheTail) {
  const std::vector<float> row = random_row(33, 4, 30);
  std::vector<float> out(33), alone(1);
  row_exp(row, 15, 0.7F, out);
  for (size_t i = 0; i < row.size(); ++i) {
    row_exp({&row[i], 1}, 15, 0.7F, alone);
    EXPECT_EQ(out[i], alone[0]) << i;
  }
}

}  // namespace
}  // namespace medusa
