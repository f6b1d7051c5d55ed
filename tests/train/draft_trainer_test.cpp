#include "train/draft_trainer.h"

#include <gtest/gtest.h>

#include "data/dataset/sample_order.h"
#include "tests/base/error_text.h"
#include "tests/train/tiny_run.h"

namespace medusa {
namespace {

Weights three_layers() {
  ModelConfig config = tiny_config();
  config.num_layers = 3;
  return tiny_weights(3, config);
}

TEST(DraftTrainer, TakesTheFirstAndTheLastLayers) {
  EXPECT_EQ(draft_layers(1, 30), (std::vector<int64_t>{0}));
  EXPECT_EQ(draft_layers(2, 30), (std::vector<int64_t>{0, 29}));
  EXPECT_EQ(draft_layers(5, 30), (std::vector<int64_t>{0, 1, 2, 28, 29}));
  EXPECT_EQ(fixtures::error_text([] { draft_layers(3, 3); }),
            "draft.layers is 3, the backbone has 3, expected fewer; lower draft.layers");
}

TEST(DraftTrainer, LearnsToAgreeWithTheBackbone) {
  const fixtures::TempFolder folder;
  const Weights backbone = three_layers();
  write_tiny_dataset(folder.path() / "dataset", backbone, 60, /*with_hidden=*/true);
  const DatasetReader dataset(folder.path() / "dataset");
  const HiddenSource hidden = cached_hidden(dataset);
  DraftTrainConfig config;
  config.batch_tokens = 200;
  config.validation_fraction = 0.2;
  config.learning_rate = 3e-3;

  const std::vector<int64_t> layers{0, 2};
  TrainableLlama untrained(backbone, layers);
  config.learning_rate = 1e-12;
  const DraftTrainResult before = train_draft(config, dataset, hidden, 1, untrained);
  TrainableLlama trained(backbone, layers);
  config.learning_rate = 3e-3;
  config.epochs = 6;
  const DraftTrainResult after = train_draft(config, dataset, hidden, 1, trained);
  EXPECT_TRUE(after.complete);
  EXPECT_EQ(after.steps, 6 * before.steps);
  EXPECT_GT(after.num_validation, 100);
  EXPECT_LT(after.loss, before.loss - 0.1);
  EXPECT_GT(after.agreement, before.agreement);

  // Embedding and LM head are the backbone's own, untouched.
  EXPECT_TRUE(trained.weights().embedding.is_same(backbone.embedding));
}

/// A cut of all layers is the backbone: it agrees everywhere and there is nothing to learn.
TEST(DraftTrainer, TheBackboneItselfAgreesEverywhere) {
  const fixtures::TempFolder folder;
  const Weights backbone = three_layers();
  write_tiny_dataset(folder.path() / "dataset", backbone, 20, /*with_hidden=*/false);
  const DatasetReader dataset(folder.path() / "dataset");
  Llama llama(backbone);
  DraftTrainConfig config;
  config.learning_rate = 1e-12;
  config.validation_fraction = 0.3;
  const std::vector<int64_t> all{0, 1, 2};
  TrainableLlama same(backbone, all);
  const DraftTrainResult result =
      train_draft(config, dataset, live_hidden(dataset, llama), 1, same);
  EXPECT_GT(result.agreement, 0.98);  // states are rounded to bfloat16
}

TEST(DraftTrainer, NothingToTrainOnIsTheUsersError) {
  const fixtures::TempFolder folder;
  const Weights backbone = three_layers();
  write_tiny_dataset(folder.path() / "dataset", backbone, 1, /*with_hidden=*/true);
  const DatasetReader dataset(folder.path() / "dataset");
  DraftTrainConfig config;
  config.validation_fraction = 0.5;
  uint64_t seed = 0;
  while (!in_validation(Random(seed), 0, 0.5)) ++seed;
  const std::vector<int64_t> layers{0};
  TrainableLlama draft(backbone, layers);
  EXPECT_EQ(
      fixtures::error_text(
          [&] { train_draft(config, dataset, cached_hidden(dataset), seed, draft); }),
      "make-draft: the dataset has no sample to train on, expected at least one; distil more, "
      "or lower draft.validation_fraction");
}

}  // namespace
}  // namespace medusa
