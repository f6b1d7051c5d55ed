#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace medusa {
namespace {

TEST(Random, ANumberDoesNotDependOnWhatWasAskedBefore) {
  const Random random(5);
  const double alone = Random(5).uniform(RandomUse::Accept, 17, 3);
  for (int64_t position = 100; position > 0; --position)
    for (const auto use : {RandomUse::Accept, RandomUse::Draft}) random.uniform(use, position);
  EXPECT_EQ(random.uniform(RandomUse::Accept, 17, 3), alone);
}

TEST(Random, SeedUsePositionIndexAndChildAllMatter) {
  std::set<uint64_t> numbers;
  size_t asked = 0;
  for (const uint64_t seed : {0, 1, 2})
    for (uint64_t use = 1; use <= 7; ++use)
      for (int64_t position = -1; position < 20; ++position)
        for (uint64_t index = 0; index < 20; ++index) {
          const Random random(seed);
          numbers.insert(random.bits(static_cast<RandomUse>(use), position, index));
          numbers.insert(random.child(3).bits(static_cast<RandomUse>(use), position, index));
          asked += 2;
        }
  EXPECT_EQ(numbers.size(), asked);
}

/// Chi-square of counts that should be equal.
double chi_square(const std::vector<int64_t>& counts) {
  double total = 0, sum = 0;
  for (const int64_t n : counts) total += static_cast<double>(n);
  const double expected = total / static_cast<double>(counts.size());
  for (const int64_t n : counts) sum += std::pow(static_cast<double>(n) - expected, 2) / expected;
  return sum;
}

// With 255 degrees of freedom one statistic in a thousand is above 330.5.
constexpr double kAllowed255 = 330.5;

TEST(Random, NumbersAreUniformAlongEachCoordinate) {
  constexpr int64_t kNumbers = 256 * 200;
  std::array<std::vector<int64_t>, 3> cells;
  for (auto& each : cells) each.resize(256);
  const auto count = [](std::vector<int64_t>& into, double number) {
    ASSERT_GE(number, 0);
    ASSERT_LT(number, 1);
    ++into[static_cast<size_t>(number * 256)];
  };
  const Random random(42);
  for (int64_t i = 0; i < kNumbers; ++i) {
    const auto index = static_cast<uint64_t>(i);
    count(cells[0], random.uniform(RandomUse::Accept, i));
    count(cells[1], random.uniform(RandomUse::Accept, 0, index));
    count(cells[2], random.child(index).uniform(RandomUse::Accept, 0));
  }
  for (const auto& each : cells) EXPECT_LT(chi_square(each), kAllowed255);
}

TEST(Random, NeighborsAreIndependent) {
  std::vector<int64_t> cells(256);  // 16 x 16: the number of a position and that of the next
  const Random random(43);
  for (int64_t i = 0; i < 256 * 200; ++i) {
    const double here = random.uniform(RandomUse::Accept, i);
    const double next = random.uniform(RandomUse::Accept, i + 1);
    ++cells[static_cast<size_t>(here * 16) * 16 + static_cast<size_t>(next * 16)];
  }
  EXPECT_LT(chi_square(cells), kAllowed255);
}

}  // namespace
}  // namespace medusa
