#include "train/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace medusa {
namespace {

OptimizerConfig schedule(int64_t warmup, RateSchedule how = RateSchedule::Cosine) {
  return {.learning_rate = 2, .schedule = how, .warmup_steps = warmup};
}

TEST(LearningRate, RisesLinearlyAndFallsAsACosine) {
  const OptimizerConfig config = schedule(4);
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 20), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3, 20), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4, 20), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 12, 20), 1.0);  // half of the way down
  EXPECT_GT(learning_rate(config, 19, 20), 0.0);
  EXPECT_LT(learning_rate(config, 19, 20), 0.05);
}

TEST(LearningRate, StartsAtThePeakWithoutWarmUp) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(0), 0, 10), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(0), 0, 1), 2.0);
}

TEST(LearningRate, AShortRunWarmsUpOverHalfOfItsSteps) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(40), 4, 10), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(40), 0, 10), 0.4);
}

TEST(LearningRate, FallsAsAStraightLine) {
  const OptimizerConfig config = schedule(4, RateSchedule::Linear);
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 20), 0.5);  // the warm-up is everybody's
  EXPECT_DOUBLE_EQ(learning_rate(config, 4, 20), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 8, 20), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 16, 20), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 19, 20), 0.125);
}

TEST(LearningRate, StaysConstant) {
  const OptimizerConfig config = schedule(4, RateSchedule::Constant);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 20), 1.0);
  for (const int64_t step : {4, 12, 19}) EXPECT_EQ(learning_rate(config, step, 20), 2.0);
}

TEST(Ramp, GrowsFromNothingToOne) {
  for (const Ramp ramp : {Ramp::Sine, Ramp::Linear}) {
    EXPECT_EQ(ramp_factor(ramp, 0, 40), 0);
    EXPECT_NEAR(ramp_factor(ramp, 40, 40), 1, 1e-12);
  }
  EXPECT_NEAR(ramp_factor(Ramp::Linear, 10, 40), 0.25, 1e-12);
  EXPECT_NEAR(ramp_factor(Ramp::Sine, 20, 40), std::sqrt(0.5), 1e-12);
  EXPECT_EQ(ramp_factor(Ramp::Constant, 0, 40), 1);
}

}  // namespace
}  // namespace medusa
