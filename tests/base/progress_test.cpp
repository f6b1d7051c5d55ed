#include "base/progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace medusa {
namespace {

class ToldProgress : public testing::Test {
 protected:
  ProgressFunction tell() {
    return [this](const StageProgress& now) { told_.push_back(now); };
  }
  std::vector<StageProgress> told_;
};

TEST_F(ToldProgress, TellsOfTheFirstUpdateAndOfTheEnd) {
  Progress progress(tell(), "train", "steps", 1000);
  progress.start_from(3);
  for (int64_t i = 4; i <= 1000; ++i) progress.update(i, "loss 2.5");
  progress.finish("loss 2.0");
  progress.finish("again");
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[0].stage + " " + told_[0].unit, "train steps");
  EXPECT_EQ(told_[0].done, 4);
  EXPECT_EQ(told_[0].from, 3);
  EXPECT_EQ(told_[0].total, 1000);
  EXPECT_EQ(told_[0].note, "loss 2.5");
  EXPECT_FALSE(told_[0].finished || told_[0].given_up);
  EXPECT_EQ(told_[1].done, 1000);
  EXPECT_EQ(told_[1].note, "loss 2.0");
  EXPECT_TRUE(told_[1].finished && !told_[1].given_up);
}

TEST_F(ToldProgress, AStageThatNobodyFinishedIsGivenUp) {
  { Progress(tell(), "load", "tensors", 0).update(7); }
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_TRUE(told_[1].given_up && !told_[1].finished);
  EXPECT_EQ(told_[1].done, 7);
  { Progress(tell(), "load", "tensors", 0); }
  EXPECT_EQ(told_.size(), 2U) << "of what never began nothing is told";
}

TEST(Progress, NobodyNeedsToListen) {
  Progress progress({}, "load", "tensors", 0);
  progress.update(1);
  progress.finish();
}

}  // namespace
}  // namespace medusa
