#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "train/loss/row_loss.h"

namespace medusa {
namespace {

struct Expected {
  double loss = 0;
  int32_t rank = 0;
  std::vector<double> gradient;
};

/// One label, or several that share the probability.
struct Target {
  int32_t label = 0;
  std::vector<int32_t> rows;
  std::vector<float> probs;

  RowTarget view() const { return {label, rows, probs}; }
};

Target certain(int32_t label) { return {label, {label}, {1.0F}}; }

/// Every third row from the label on, at most 40: more than one group of lanes.
Target shared(int64_t size, int32_t label) {
  Target target{label, {}, {}};
  for (int64_t row = label; row < size && target.rows.size() < 40; row += 3)
    target.rows.push_back(static_cast<int32_t>(row));
  for (size_t i = 0; i < target.rows.size(); ++i)
    target.probs.push_back(2.0F * static_cast<float>(i + 1) /
                           static_cast<float>(target.rows.size() * (target.rows.size() + 1)));
  return target;
}

/// The slow twin: one loop per quantity, in double.
Expected slowly(const std::vector<float>& logits, const Target& target, double scale) {
  Expected expected;
  double sum = 0, most = -1e30;
  for (const float logit : logits) most = std::max(most, static_cast<double>(logit));
  for (const float logit : logits) sum += std::exp(logit - most);
  const int32_t label = target.label;
  const float wanted = logits[static_cast<size_t>(label)];
  expected.loss = std::log(sum) + most;
  for (size_t j = 0; j < target.rows.size(); ++j)
    expected.loss -= target.probs[j] * logits[static_cast<size_t>(target.rows[j])];
  for (int32_t i = 0; i < static_cast<int32_t>(logits.size()); ++i) {
    const float logit = logits[static_cast<size_t>(i)];
    expected.rank += logit > wanted || (logit == wanted && i < label) ? 1 : 0;
    expected.gradient.push_back(scale * std::exp(logit - most) / sum);
  }
  for (size_t j = 0; j < target.rows.size(); ++j)
    expected.gradient[static_cast<size_t>(target.rows[j])] -= scale * target.probs[j];
  return expected;
}

std::vector<float> random_row(int64_t size) {
  std::vector<float> row;
  for (int64_t i = 0; i < size; ++i)  // steps of 1/16: exact in bfloat16, some of them equal
    row.push_back(std::floor(static_cast<float>(Random(5).uniform(RandomUse::Init, i)) * 160.0F) /
                      16.0F -
                  5.0F);
  return row;
}

std::vector<uint16_t> as_halves(const std::vector<float>& row) {
  std::vector<uint16_t> halves;
  for (const float value : row) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    halves.push_back(static_cast<uint16_t>(bits >> 16));
  }
  return halves;
}

float as_float(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

constexpr int64_t kSizes[] = {1, 2, 15, 16, 17, 33, 130, 8192};

std::vector<Target> targets_of(int64_t size) {
  std::vector<Target> targets;
  for (const int64_t label : {int64_t{0}, size / 2, size - 1}) {
    targets.push_back(certain(static_cast<int32_t>(label)));
    targets.push_back(shared(size, static_cast<int32_t>(label)));
  }
  return targets;
}

TEST(CrossEntropy, OfFloatsIsThatOfTheLoops) {
  for (const int64_t size : kSizes)
    for (const Target& target : targets_of(size)) {
      SCOPED_TRACE(testing::Message() << size << " logits, label " << target.label << ", "
                                      << target.rows.size() << " rows");
      std::vector<float> row = random_row(size);
      const Expected expected = slowly(row, target, 0.25);
      const RowLoss loss = cross_entropy(std::span<float>(row), target.view(), 0.25F);
      EXPECT_NEAR(loss.loss, expected.loss, 1e-5);
      EXPECT_EQ(loss.rank, expected.rank);
      for (size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], expected.gradient[i], 1e-6) << i;
    }
}

TEST(CrossEntropy, OfHalvesIsThatOfTheLoops) {
  for (const int64_t size : kSizes)
    for (const Target& target : targets_of(size)) {
      SCOPED_TRACE(testing::Message() << size << " logits, label " << target.label << ", "
                                      << target.rows.size() << " rows");
      const std::vector<float> row = random_row(size);
      std::vector<uint16_t> halves = as_halves(row);
      const Expected expected = slowly(row, target, 0.25);
      const RowLoss loss = cross_entropy(std::span<uint16_t>(halves), target.view(), 0.25F);
      EXPECT_NEAR(loss.loss, expected.loss, 1e-5);
      EXPECT_EQ(loss.rank, expected.rank);
      for (size_t i = 0; i < row.size(); ++i)
        ASSERT_NEAR(as_float(halves[i]), expected.gradient[i],
                    1e-7 + std::abs(expected.gradient[i]) / 256)
            << i;
    }
}

TEST(CrossEntropy, WithoutALabelThereIsNoRank) {
  std::vector<float> row = random_row(130);
  Target target = shared(130, 5);
  target.label = -2;
  EXPECT_EQ(cross_entropy(std::span<float>(row), target.view(), 0).rank,
            std::numeric_limits<int32_t>::max());
}

TEST(CrossEntropy, WithoutAScaleTheRowStays) {
  std::vector<float> row = random_row(130);
  const std::vector<float> before = row;
  cross_entropy(std::span<float>(row), certain(7).view(), 0);
  EXPECT_EQ(row, before);
}

TEST(CrossEntropy, IsExactForLogitsFarApart) {
  std::vector<float> row{-300, 0, 300};
  EXPECT_NEAR(cross_entropy(std::span<float>(row), certain(0).view(), 1).loss, 600, 1e-3);
  EXPECT_NEAR(row[0], -1, 1e-6);
  EXPECT_NEAR(row[2], 1, 1e-6);
}

}  // namespace
}  // namespace medusa
