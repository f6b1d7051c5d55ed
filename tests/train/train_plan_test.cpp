#include "train/train_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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

}  // namespace
}  // namespace medusa
