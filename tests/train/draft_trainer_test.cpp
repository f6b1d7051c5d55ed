#include "train/draft_trainer.h"

#include <gtest/gtest.h>

#include <memory>

#include "data/dataset/sample_order.h"
#include "tests/base/error_text.h"
#include "tests/train/child_run.h"
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
  EXPECT_EQ(fixtures::error_text([] { draft_layers(1, 1); }),
            "make-draft: the backbone has one layer, expected at least 2, of which some are left "
            "out; use another drafter");
  EXPECT_EQ(fixtures::error_text([] { draft_layers(3, 3); }),
            "draft.layers is 3, the backbone has 3, expected fewer; lower draft.layers");
}

/// A draft model of the first and the last of three layers.
struct TinyDraft {
  explicit TinyDraft(int64_t num_samples = 60) : backbone(three_layers()) {
    write_tiny_dataset(folder / "dataset", backbone, num_samples, /*with_hidden=*/true);
    config.batch_tokens = 200;
    config.validation_fraction = 0.2;
    config.optimizer.learning_rate = 3e-3;
  }

  /// Trains in folder/<name>.
  DraftTrainResult train(const std::string& name, const Reported& reported = {}) {
    const DatasetReader dataset(folder / "dataset");
    const HiddenSource hidden = offline_hidden(dataset);
    draft = std::make_unique<TrainableLlama>(backbone, layers);
    return train_draft(
        config, {dataset, hidden, backbone.fingerprint, seed, folder / name, reported}, *draft);
  }

  std::string state_bytes(const std::string& name) const {
    return read_file(folder / (name + "/checkpoint/state.safetensors"));
  }

  fixtures::TempFolder folder;
  Weights backbone;
  std::vector<int64_t> layers{0, 2};
  DraftTrainConfig config;
  uint64_t seed = 1;
  std::unique_ptr<TrainableLlama> draft;
};

TEST(DraftTrainer, LearnsToAgreeWithTheBackbone) {
  TinyDraft run;
  run.config.optimizer.learning_rate = 1e-12;
  const DraftTrainResult before = run.train("untrained");
  run.config.optimizer.learning_rate = 3e-3;
  run.config.optimizer.epochs = 6;
  const DraftTrainResult after = run.train("trained");
  EXPECT_TRUE(after.complete);
  EXPECT_EQ(after.steps, 6 * before.steps);
  EXPECT_GT(after.num_validation, 100);
  EXPECT_LT(after.validation_loss, before.validation_loss - 0.1);
  EXPECT_GT(after.agreement, before.agreement);

  // Embedding and LM head are the backbone's own, untouched.
  EXPECT_TRUE(run.draft->weights().embedding.is_same(run.backbone.embedding));
}

/// A cut of all layers is the backbone: it agrees everywhere and there is nothing to learn.
TEST(DraftTrainer, TheBackboneItselfAgreesEverywhere) {
  TinyDraft run(20);
  run.layers = {0, 1, 2};
  run.config.optimizer.learning_rate = 1e-12;
  run.config.validation_fraction = 0.3;
  EXPECT_GT(run.train("same").agreement, 0.98);  // states are rounded to bfloat16
}

TEST(DraftTrainer, ReportsItsStepsAndItsValidation) {
  TinyDraft run;
  run.config.reports.report_every = 1;
  const DraftTrainResult result = run.train("a");
  const auto reports = reports_in(run.folder / "a/metrics.jsonl", "train");
  ASSERT_EQ(std::ssize(reports), result.steps);
  EXPECT_EQ(reports.back().at("epoch"), 1);
  EXPECT_EQ(reports.back().at("positions"), result.positions);
  EXPECT_LT(reports.back().at("loss_nats"), reports.front().at("loss_nats"));
  const auto validations = reports_in(run.folder / "a/metrics.jsonl", "validation");
  ASSERT_EQ(validations.size(), 1U);
  EXPECT_EQ(validations[0].at("loss_nats"), result.validation_loss);
}

TEST(DraftTrainer, ARunThatWasKilledEndsWithTheSameBytes) {
  TinyDraft run;
  run.config.optimizer.epochs = 4;
  run.config.reports = {.report_every = 1, .checkpoint_every = 3};
  const DraftTrainResult whole = run.train("whole");
  for (const size_t after : {2U, 7U}) {
    SCOPED_TRACE(after);
    const std::string name = "killed" + std::to_string(after);
    const int status = train_and_signal([&] { return run.train(name).complete; },
                                        run.folder / (name + "/metrics.jsonl"), after, SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(status));
    const DraftTrainResult result = run.train(name);
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.validation_loss, whole.validation_loss);
    EXPECT_EQ(run.state_bytes(name), run.state_bytes("whole"));
  }
}

TEST(DraftTrainer, RefusesACheckpointOfOtherSettings) {
  TinyDraft run(20);
  run.train("a");
  run.config.reports.report_every = 3;  // decides nothing
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }), "(no error)");
  run.config.layers = 1;
  EXPECT_EQ(
      fixtures::error_text(run.folder, [&] { run.train("a"); }),
      "<>/a/checkpoint: the checkpoint was made with draft.layers 2, this run has "
      "draft.layers 1, expected the same; set it back to continue, or train anew with --fresh");
}

TEST(DraftTrainer, RefusesACheckpointOfAnotherDtype) {
  TinyDraft run(20);
  run.train("a");
  const std::string model = run.backbone.fingerprint;
  run.backbone = tiny_weights(1, run.backbone.config, at::kBFloat16);
  run.backbone.fingerprint = model;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "<>/a/checkpoint: the checkpoint was made with backbone.dtype float32, this run has "
            "backbone.dtype bfloat16, expected the same; set it back to continue, or train anew "
            "with --fresh");
}

TEST(DraftTrainer, NothingToTrainOnIsTheUsersError) {
  TinyDraft run(1);
  run.config.validation_fraction = 0.5;
  run.seed = 0;
  while (!in_validation(Random(run.seed), 0, 0.5)) ++run.seed;
  EXPECT_EQ(
      fixtures::error_text([&] { run.train("a"); }),
      "make-draft: the dataset has no sample to train on, expected at least one; distil more, "
      "or lower draft.validation_fraction");
}

}  // namespace
}  // namespace medusa
