#include "train/train_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "data/dataset/sample_order.h"
#include "tests/base/error_text.h"
#include "tests/train/tiny_joint.h"
#include "tests/train/tiny_run.h"

namespace medusa {
namespace {

TEST(TrainPlan, EveryEpochVisitsEveryPositionOnce) {
  TinyRun run;
  run.config.optimizer.epochs = 3;
  run.config.batch_positions = 37;
  run.config.shuffle_positions = 200;
  const DatasetReader dataset(run.folder.path() / "dataset");
  const TrainPlan plan = plan_training(run.config, dataset);
  EXPECT_GT(plan.pools.size(), 6U);
  std::map<int64_t, int> visits;
  for (const auto& pool : plan.pools)
    for (const int64_t sample : pool) ++visits[sample];
  for (const auto& [sample, times] : visits) EXPECT_EQ(times, 3) << sample;
  EXPECT_EQ(static_cast<int64_t>(visits.size() + plan.validation.size()), dataset.size());
  for (const int64_t sample : plan.validation) EXPECT_FALSE(visits.contains(sample));

  std::vector<int64_t> next(plan.pools.size());  // position of each pool that comes next
  for (size_t i = 0; i < plan.batches.size(); ++i) {
    const PlannedBatch& batch = plan.batches[i];
    int64_t& begin = next[static_cast<size_t>(batch.pool)];
    EXPECT_EQ(batch.begin, begin);
    EXPECT_LE(batch.end - batch.begin, 37);
    EXPECT_GT(batch.end, batch.begin);
    EXPECT_EQ(plan.positions_before[i + 1] - plan.positions_before[i], batch.end - batch.begin);
    if (i > 0) {
      EXPECT_GE(batch.pool, plan.batches[i - 1].pool);  // a pool is loaded once
    }
    begin = batch.end;
  }
  for (size_t pool = 0; pool < plan.pools.size(); ++pool) {
    int64_t positions = 0;
    for (const int64_t sample : plan.pools[pool]) positions += num_positions(dataset, sample);
    EXPECT_EQ(next[pool], positions);
  }
}

TEST(TrainPlan, PositionsOfEachPoolAreShuffledInTheirOwnWay) {
  const auto a = shuffled_positions(Random(1), 0, 100), b = shuffled_positions(Random(1), 1, 100);
  EXPECT_NE(a, b);
  EXPECT_EQ(a, shuffled_positions(Random(1), 0, 100));
  for (auto order : {a, b}) {
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

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

TEST(JointPlan, RefusesWeightsByWhichNothingIsVisited) {
  TinyJoint run;
  const fixtures::TempFolder folder;
  write_tiny_dataset(folder.path() / "dataset", run.backbone, 8, /*with_hidden=*/false);
  const WeightedFolder seldom{folder.path() / "dataset", 0.001};
  const DatasetReader dataset(std::span(&seldom, 1));
  run.config.validation_fraction = 0;
  EXPECT_EQ(fixtures::error_text([&] {
              plan_joint(run.config, run.joint, dataset);
            }).find("train.data_weights: found weights by which none of 8 samples has its turn"),
            0U);
}

TEST(JointPlan, RefusesAGuardThatHasNothingToWatch) {
  TinyJoint run;
  run.config.validation_fraction = 0;
  EXPECT_EQ(fixtures::error_text([&] { Plan unguarded(run); }),
            "train.joint.guard: the dataset has no validation sample, expected some to compare the "
            "backbone on; raise train.validation_fraction, distil more, or set "
            "train.joint.guard.samples to 0 to train without a guard");
  run.joint.guard.samples = 0;
  EXPECT_TRUE(Plan(run).plan.validation.empty());
}

TEST(JointPlan, RefusesADatasetWithoutASampleToTrainOn) {
  TinyJoint run;
  const fixtures::TempFolder folder;
  write_tiny_dataset(folder.path() / "dataset", run.backbone, 1, /*with_hidden=*/false);
  const DatasetReader dataset(folder.path() / "dataset");
  run.config.validation_fraction = 0.5;
  while (!in_validation(Random(run.config.seed), 0, 0.5)) ++run.config.seed;
  EXPECT_EQ(fixtures::error_text([&] { plan_joint(run.config, run.joint, dataset); }),
            "train: the dataset has 1 samples, 0 of them for training, and none with two answer "
            "tokens, expected some; distil more text, or longer answers with a larger "
            "distill.max_new_tokens, or lower train.validation_fraction");
}

}  // namespace

}  // namespace medusa
