#include "train/head_trainer.h"

#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace medusa {
namespace {

struct TrainedOnce {
  MedusaHeads heads;
  StepOutcome report;
};

/// One step over samples 0 to 3, in batches of so many samples.
TrainedOnce train_once(const TinyRun& run, HeadOutput output, size_t samples_per_batch) {
  const DatasetReader dataset(run.folder.path() / "dataset");
  HeadsConfig config = run.heads;
  config.output = output;
  TrainedOnce trained{make_heads(config, run.backbone, {}, 3), {}};
  const auto rows = rows_of_tokens(trained.heads);
  std::vector<Batch> batches;
  const std::vector<int64_t> samples{0, 1, 2, 3};
  const BatchRecipe recipe = tiny_recipe(run.backbone, config.num_heads, rows);
  for (size_t i = 0; i < samples.size(); i += samples_per_batch) {
    const ShuffleBuffer pool(dataset, {samples.data() + i, samples_per_batch},
                             offline_hidden(dataset), recipe);
    batches.push_back(pool.batch(all_positions(pool)));
  }
  HeadTrainer trainer(run.config, trained.heads, run.backbone);
  trainer.step(batches, 0.01);
  trained.report = trainer.step(batches, 0.01);
  return trained;
}

TEST(HeadTrainer, AccumulatedBatchesMakeTheStepOfOneLargeBatch) {
  const TinyRun run;
  for (const HeadOutput output : {HeadOutput::Shared, HeadOutput::Own}) {
    const TrainedOnce whole = train_once(run, output, 4), parts = train_once(run, output, 1);
    EXPECT_NEAR(whole.report.loss, parts.report.loss, 1e-4);
    EXPECT_NEAR(whole.report.gradient_norm, parts.report.gradient_norm, 1e-4);
    for (size_t k = 0; k < 3; ++k)
      EXPECT_EQ(whole.report.heads[k].num_labels, parts.report.heads[k].num_labels);
  }
}

TEST(HeadTrainer, TheLossIsWeightedByHead) {
  const TinyRun run;
  const StepOutcome report = train_once(run, HeadOutput::Shared, 4).report;
  double expected = 0, weight = 1;
  for (const HeadLoss& head : report.heads) {
    expected += weight * head.loss / static_cast<double>(head.num_labels);
    weight *= 0.8;
  }
  EXPECT_NEAR(report.loss, expected, 1e-9);
}

TEST(HeadTrainer, TheBackboneStaysAsItWas) {
  const TinyRun run;
  const at::Tensor before = run.backbone.lm_head.clone();
  for (const HeadOutput output : {HeadOutput::Shared, HeadOutput::Own}) {
    const TrainedOnce trained = train_once(run, output, 2);
    EXPECT_TRUE(at::equal(run.backbone.lm_head, before));
    if (output == HeadOutput::Own) {
      EXPECT_FALSE(at::equal(trained.heads.outputs[0], before));
    }
  }
}

}  // namespace
}  // namespace medusa
