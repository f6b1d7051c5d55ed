#include "data/dataset/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace medusa {
namespace {

std::vector<int64_t> first_numbers(int64_t n) {
  std::vector<int64_t> samples(static_cast<size_t>(n));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

std::vector<int64_t> take(SampleOrder& order, int64_t n) {
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < n; ++i) taken.push_back(order.next());
  return taken;
}

TEST(SampleOrder, EachEpochHasEverySampleOnceInAnotherOrder) {
  SampleOrder order(first_numbers(20), Random(1));
  const auto first = take(order, 20), second = take(order, 20);
  EXPECT_NE(first, second);
  for (auto epoch : {first, second}) {
    EXPECT_NE(epoch, first_numbers(20));
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, first_numbers(20));
  }
}

TEST(SampleOrder, TheSeedDecides) {
  SampleOrder a(first_numbers(20), Random(1)), b(first_numbers(20), Random(1)),
      c(first_numbers(20), Random(2));
  const auto first = take(a, 40);
  EXPECT_EQ(take(b, 40), first);
  EXPECT_NE(take(c, 40), first);
}

TEST(SampleOrder, ContinuesExactlyFromAnySavedState) {
  SampleOrder unbroken(first_numbers(7), Random(3));
  const auto expected = take(unbroken, 30);
  for (int64_t stop = 0; stop < 30; ++stop) {
    SampleOrder before(first_numbers(7), Random(3));
    take(before, stop);
    SampleOrder after(first_numbers(7), Random(3));
    after.continue_from(before.state());
    EXPECT_EQ(after.state(), before.state());
    EXPECT_EQ(take(after, 30 - stop), std::vector<int64_t>(expected.begin() + stop, expected.end()))
        << stop;
  }
}

TEST(SampleOrder, OneSampleComesAgainAndAgain) {
  SampleOrder order({42}, Random(1));
  EXPECT_EQ(take(order, 3), (std::vector<int64_t>{42, 42, 42}));
  EXPECT_EQ(order.state(), (SampleOrder::State{2, 1}));
}

TEST(SampleOrder, AllOrdersAreEquallyFrequent) {
  std::map<std::vector<int64_t>, int> times;
  SampleOrder order(first_numbers(4), Random(5));
  constexpr int kEpochs = 24000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++times[take(order, 4)];
  ASSERT_EQ(times.size(), 24u);
  double chi_square = 0;
  for (const auto& [each, n] : times) chi_square += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom: one in a thousand is above
}

TEST(SampleSplit, HasEverySampleOnceAndAboutTheFraction) {
  const auto split = split_samples(Random(1), 10000, 0.1);
  EXPECT_EQ(split.train.size() + split.validation.size(), 10000u);
  EXPECT_NEAR(static_cast<double>(split.validation.size()), 1000, 100);  // 3.3 deviations
  std::vector<int64_t> all = split.train;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, first_numbers(10000));
}

TEST(SampleSplit, ASampleStaysWhereItIsWhenTheDatasetGrows) {
  const auto small = split_samples(Random(1), 100, 0.2), large = split_samples(Random(1), 200, 0.2);
  EXPECT_TRUE(
      std::equal(small.validation.begin(), small.validation.end(), large.validation.begin()));
  EXPECT_TRUE(std::equal(small.train.begin(), small.train.end(), large.train.begin()));
}

TEST(SampleSplit, ALargerFractionKeepsTheChosenOnes) {
  for (int64_t i = 0; i < 1000; ++i)
    if (in_validation(Random(9), i, 0.1)) {
      EXPECT_TRUE(in_validation(Random(9), i, 0.3));
    }
}

TEST(SampleSplit, FractionsZeroAndOneAreExact) {
  EXPECT_TRUE(split_samples(Random(1), 50, 0).validation.empty());
  EXPECT_TRUE(split_samples(Random(1), 50, 1).train.empty());
}

}  // namespace
}  // namespace medusa
