#include "infer/draft_models/draft_schedule.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace medusa {
namespace {

std::vector<double> chain(int32_t length) {
  return std::vector<double>(static_cast<size_t>(length), 0.9);
}

TEST(DraftSchedule, ConstantStaysWhateverHappens) {
  DraftSchedule schedule({DraftScheduleKind::Constant, 5, 0.4});
  schedule.observe(chain(5), 5);
  schedule.observe(chain(5), 0);
  EXPECT_EQ(schedule.length(), 5);
  EXPECT_TRUE(schedule.goes_on(0.01));
}

TEST(DraftSchedule, HeuristicGrowsByTwoAndShrinksByOne) {
  DraftSchedule schedule({DraftScheduleKind::Heuristic, 3, 0.4});
  schedule.observe(chain(3), 3);
  EXPECT_EQ(schedule.length(), 5);
  schedule.observe(chain(5), 4);
  EXPECT_EQ(schedule.length(), 4);
  for (int i = 0; i < 9; ++i) schedule.observe(chain(1), 0);
  EXPECT_EQ(schedule.length(), 1);
  for (int i = 0; i < 60; ++i) schedule.observe(chain(1), 1);
  EXPECT_EQ(schedule.length(), 62) << "never more than the largest tree holds";
}

TEST(DraftSchedule, AStepWithoutADraftTeachesNothing) {
  DraftSchedule schedule({DraftScheduleKind::Heuristic, 3, 0.4});
  schedule.observe({}, 0);
  EXPECT_EQ(schedule.length(), 3);
}

TEST(DraftSchedule, ConfidenceEndsBehindAnImprobableToken) {
  const DraftSchedule schedule({DraftScheduleKind::Confidence, 5, 0.4});
  EXPECT_TRUE(schedule.goes_on(0.4));
  EXPECT_FALSE(schedule.goes_on(0.39));
}

/// All thresholds in turn, as transformers' ROC curve has them.
double slow_threshold(const std::vector<double>& probabilities, const std::vector<bool>& right) {
  double best = 1, best_cost = 3;
  std::vector<double> candidates = probabilities;
  std::sort(candidates.rbegin(), candidates.rend());
  for (const double threshold : candidates) {
    double wrong_run = 0, wrong = 0, right_lost = 0, all_right = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      (right[i] ? all_right : wrong) += 1;
      if (right[i] && probabilities[i] < threshold) right_lost += 1;
      if (!right[i] && probabilities[i] >= threshold) wrong_run += 1;
    }
    const double cost = wrong_run / wrong + 3 * right_lost / all_right;
    if (cost < best_cost - 1e-12) {
      best_cost = cost;
      best = threshold;
    }
  }
  return best;
}

TEST(DraftSchedule, TheThresholdIsTheBestOfAll) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed);
    std::vector<double> probabilities;
    std::vector<bool> right;
    const int64_t n = 3 + static_cast<int64_t>(seed % 20);
    for (int64_t i = 0; i < n; ++i) {
      const double p = std::round(10 * random.uniform(RandomUse::Init, i)) / 10;  // ties
      probabilities.push_back(p);
      right.push_back(random.uniform(RandomUse::Shuffle, i) < p);
    }
    right[0] = true;
    right[1] = false;
    EXPECT_EQ(best_threshold(probabilities, right), slow_threshold(probabilities, right)) << seed;
  }
}

TEST(DraftSchedule, TheThresholdMovesOnceBothKindsWereSeen) {
  DraftSchedule schedule({DraftScheduleKind::Confidence, 9, 0.4});
  schedule.observe(std::vector<double>{0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, 7);
  EXPECT_EQ(schedule.threshold(), 0.4) << "nothing was wrong yet";
  schedule.observe(std::vector<double>{0.8, 0.2, 0.1}, 1);  // 0.1 was never judged
  EXPECT_EQ(schedule.threshold(), 0.8);
}

}  // namespace
}  // namespace medusa
