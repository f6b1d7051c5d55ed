#include "train/joint/joint_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/dataset/sample_order.h"
#include "tests/base/error_text.h"
#include "tests/train/tiny_joint.h"

namespace medusa {
namespace {

struct Plan {
  explicit Plan(const TinyJoint& run)
      : dataset(run.folder.path() / "dataset"),
        split(
            split_samples(Random(run.config.seed), dataset.size(), run.config.validation_fraction)),
        plan(plan_joint(run.config, run.joint, dataset)) {}

  DatasetReader dataset;
  SampleSplit split;
  JointPlan plan;
};

TEST(JointPlan, AnEpochTrainsOnEverySampleOnceThatIsNotForValidation) {
  TinyJoint run;
  run.joint.optimizer.epochs = 2;
  const Plan made(run);
  std::vector<int64_t> trained;
  for (const SampleBatch& batch : made.plan.batches) {
    int64_t answers = 0;
    for (const int64_t sample : batch.samples) answers += std::ssize(made.dataset.answer(sample));
    EXPECT_EQ(batch.positions, answers);
    trained.insert(trained.end(), batch.samples.begin(), batch.samples.end());
  }
  const auto middle = trained.begin() + std::ssize(trained) / 2;
  EXPECT_FALSE(std::equal(trained.begin(), middle, middle)) << "each epoch in an order of its own";
  std::sort(trained.begin(), middle);
  std::sort(middle, trained.end());
  EXPECT_EQ(std::vector<int64_t>(trained.begin(), middle), made.split.train);
  EXPECT_EQ(std::vector<int64_t>(middle, trained.end()), made.split.train);
}

TEST(JointPlan, TheGuardAndTheValidationSeeHeldOutSamplesAlone) {
  TinyJoint run;
  run.joint.guard.samples = 3;
  run.config.validation_positions = 30;
  const Plan made(run);
  ASSERT_GT(made.split.validation.size(), 3U);
  EXPECT_EQ(made.plan.probe,
            std::vector<int64_t>(made.split.validation.begin(), made.split.validation.begin() + 3));
  // Whole samples, until there are enough positions: these have 19 to 31 each.
  ASSERT_EQ(made.plan.validation.size(), 2U);
  EXPECT_EQ(made.plan.validation[0].samples, std::vector<int64_t>{made.split.validation[0]});
  EXPECT_EQ(made.plan.validation[1].samples, std::vector<int64_t>{made.split.validation[1]});
  run.joint.guard.samples = 0;
  EXPECT_TRUE(Plan(run).plan.probe.empty());
}

TEST(JointPlan, AStepTakesItsBatchesAndTheLastOneWhatIsLeft) {
  TinyJoint run;
  run.joint.accumulate = 4;
  const Plan made(run);
  const int64_t count = std::ssize(made.plan.batches);
  ASSERT_NE(count % 4, 0);
  EXPECT_EQ(made.plan.num_steps, count / 4 + 1);
  EXPECT_EQ(made.plan.batches_of(0).size(), 4U);
  EXPECT_EQ(std::ssize(made.plan.batches_of(count / 4)), count % 4);
  EXPECT_EQ(made.plan.batches_of(1)[0].samples, made.plan.batches[4].samples);
  run.joint.max_steps = 1;
  EXPECT_EQ(Plan(run).plan.num_steps, 1);
}

TEST(JointPlan, RefusesADatasetWithoutASampleToTrainOn) {
  TinyJoint run;
  const fixtures::TempFolder folder;
  write_tiny_dataset(folder.path() / "dataset", run.backbone, 1, /*with_hidden=*/false);
  const DatasetReader dataset(folder.path() / "dataset");
  run.config.validation_fraction = 0.5;
  while (!in_validation(Random(run.config.seed), 0, 0.5)) ++run.config.seed;
  EXPECT_EQ(fixtures::error_text([&] { plan_joint(run.config, run.joint, dataset); }),
            "train: the dataset has 1 samples, found none for training, expected some; distil more "
            "text or lower train.validation_fraction");
}

}  // namespace
}  // namespace medusa
