#include "runtime/measure/row_timer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "backbone/weights.h"
#include "base/interrupt.h"

namespace medusa {
namespace {

TEST(RowTimer, CostsAreInStepsOfOneRow) {
  const StepCost cost = relative_cost(std::vector<double>{4, 5, 10});
  EXPECT_EQ(cost.relative, (std::vector<double>{1, 1.25, 2.5}));
  EXPECT_EQ(cost(2), 1.25);
}

TEST(RowTimer, DraftingIsWhatAStepTakesBeyondAPlainOneAndItsRows) {
  TreeCalibration calibration;
  calibration.rows_ms = {4, 5, 10};
  calibration.sizes = {{1, 1.0, 4.5}, {2, 1.5, 6.3}, {3, 1.7, 10.4}, {8, 2.0, 30}};
  const StepCost cost = calibrated_cost(calibration, 2);
  EXPECT_EQ(cost.relative, (std::vector<double>{1, 1.25, 2.5}));
  ASSERT_TRUE(cost.drafting);
  EXPECT_NEAR(*cost.drafting, 0.2, 1e-12);
  EXPECT_EQ(calibrated_cost(calibration, 3).drafting, 0) << "noise is no gain";
  EXPECT_FALSE(calibrated_cost(calibration, 4).drafting) << "not timed with a tree";
  EXPECT_FALSE(calibrated_cost(calibration, 8).drafting) << "its rows were not timed";
}

TEST(RowTimer, DraftingThatWasTimedIsTaken) {
  TreeCalibration calibration;
  calibration.rows_ms = {4, 5, 10};
  calibration.drafting_ms = {0, 0.5, 1};
  EXPECT_EQ(calibrated_cost(calibration, 2).drafting, 0.125);
  EXPECT_EQ(calibrated_cost(calibration, 3).drafting, 0.25);
  EXPECT_FALSE(calibrated_cost(calibration, 4).drafting);
}

TEST(RowTimer, TimesAscendWithTheRows) {
  Llama llama(
      load_weights(MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf", at::kFloat, at::kCPU));
  const std::vector<double> ms = time_rows(llama);
  ASSERT_EQ(ms.size(), 32U);
  EXPECT_GT(ms.front(), 0);
  EXPECT_TRUE(std::is_sorted(ms.begin(), ms.end()));
}

// Calibration of a large model takes minutes.
TEST(RowTimer, EndsWhenCtrlCIsPressed) {
  const auto time_interrupted = [] {
    install_interrupt_handler();
    Llama llama(
        load_weights(MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf", at::kFloat, at::kCPU));
    std::raise(SIGTERM);
    try {
      time_rows(llama);
    } catch (const Interrupted&) {
      _exit(0);
    }
    _exit(1);
  };
  EXPECT_EXIT(time_interrupted(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace medusa
