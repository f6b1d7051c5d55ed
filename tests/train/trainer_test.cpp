#include "train/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/dataset/sample_order.h"
#include "tests/base/error_text.h"
#include "tests/train/child_run.h"
#include "tests/train/tiny_run.h"
#include "train/loss/expected_tokens.h"

namespace medusa {
namespace {

std::vector<nlohmann::json> reports(const TinyRun& run, const std::string& name,
                                    const std::string& kind = "train") {
  return reports_in(run.metrics(name), kind);
}

std::vector<double> losses(const TinyRun& run, const std::string& name) {
  std::vector<double> values;
  for (const auto& report : reports(run, name)) values.push_back(report["loss_nats"]);
  return values;
}

std::string heads_bytes(const TinyRun& run, const std::string& name) {
  return read_file(run.folder.path() / name / "heads/heads.safetensors");
}

TEST(Trainer, TheFirstTenLossesAreTheGoldenOnes) {
  // Made by this test itself (float32, one thread) once the gradients agreed with numeric ones.
  // The first is the untrained heads' loss.
  const std::vector<double> golden{10.97437, 10.94536, 10.95843, 10.78660, 10.82333,
                                   10.80721, 10.81638, 10.78691, 10.82484, 10.72514};
  TinyRun run;
  run.config.optimizer.epochs = 3;
  EXPECT_TRUE(run.train("a").complete);
  const auto found = losses(run, "a");
  ASSERT_GE(found.size(), 10U);
  ASSERT_EQ(golden.size(), 10U);
  for (size_t i = 0; i < 10; ++i) {
    SCOPED_TRACE(i);
    EXPECT_NEAR(found[i], golden[i], 1e-4 * golden[i]);
  }
}

TEST(Trainer, EveryKindOfHeadsLearns) {
  TinyRun run;
  // Against the text: the tiny backbone has random weights, and its text other rules than those.
  run.config.labels = LabelKind::Hard;
  for (const auto& [input_name, input] : EnumNames<HeadInput>::values)
    for (const auto& [output_name, output] : EnumNames<HeadOutput>::values) {
      const std::string name = std::string(input_name) + " " + output_name;
      SCOPED_TRACE(name);
      run.heads.input = input;
      run.heads.output = output;
      run.config.optimizer.epochs = 20;
      const TrainResult result = run.train(name);
      ASSERT_TRUE(result.complete);
      ASSERT_EQ(result.validation.size(), 3U);
      const auto falling = losses(run, name);
      EXPECT_LT(falling.back(), 0.85 * falling.front());
      EXPECT_GT(result.validation[0].top_10, 0.12);  // 10 of 130 by chance: 0.077
      EXPECT_GE(result.validation[0].top_10, result.validation[0].top_5);
      EXPECT_GE(result.validation[0].top_5, result.validation[0].top_1);
      const LoadedHeads loaded = load_heads(run.folder.path() / name / "heads", run.backbone);
      EXPECT_EQ(loaded.manifest.step, result.steps);
      EXPECT_EQ(loaded.manifest.settings, "settings of the run\n");
      EXPECT_EQ(loaded.manifest.quality[0].top_1, result.validation[0].top_1);
    }
}

TEST(Trainer, OfflineAndOnlineStatesGiveTheSameLosses) {
  TinyRun run;
  run.config.hidden = HiddenFrom::Offline;
  run.train("cached");
  run.config.hidden = HiddenFrom::Online;
  Llama llama(run.backbone);
  run.train("live", &llama);
  const auto offline = losses(run, "cached"), online = losses(run, "live");
  ASSERT_EQ(offline.size(), online.size());
  for (size_t i = 0; i < online.size(); ++i)
    EXPECT_NEAR(offline[i], online[i], 1e-5 * offline[i]) << i;
}

TEST(Trainer, RecordedAndOnlineStatesTogetherGiveTheSameLosses) {
  TinyRun run;
  run.train("cached");
  std::filesystem::remove_all(run.folder / "dataset");
  write_tiny_dataset(run.folder / "dataset", run.backbone, 48, /*with_hidden=*/true, 0, 60000);
  const DatasetReader dataset = run.open_data();
  ASSERT_GT(dataset.num_hidden(), 5);
  ASSERT_LT(dataset.num_hidden(), 43);
  Llama llama(run.backbone);
  run.train("both", &llama);
  const auto offline = losses(run, "cached"), both = losses(run, "both");
  ASSERT_EQ(offline.size(), both.size());
  for (size_t i = 0; i < both.size(); ++i) EXPECT_NEAR(offline[i], both[i], 1e-5 * offline[i]) << i;
  // What is recorded is read, bit for bit; what is not is computed.
  const HiddenSource hidden = recorded_hidden(dataset, &llama);
  const int64_t n = dataset.num_hidden();
  EXPECT_TRUE(hidden(n - 1).equal(offline_hidden(dataset)(n - 1)));
  EXPECT_TRUE(hidden(n).equal(online_hidden(dataset, llama)(n)));

  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            fmt::format("train: the dataset holds the hidden states of {} of its 48 samples and no "
                        "backbone is loaded, expected one of them; distil with record_hidden: true",
                        n));
  run.config.hidden = HiddenFrom::Offline;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            fmt::format("train: 'hidden' is cached, the dataset holds the hidden states of {} of "
                        "its 48 samples, expected those of all; set it to auto, or distil with "
                        "record_hidden: true and no states_budget_mb",
                        n));
}

int signal_run(const TinyRun& run, const std::string& name, size_t after, int signal) {
  return train_and_signal([&] { return run.train(name).complete; }, run.metrics(name), after,
                          signal);
}

TEST(Trainer, ARunThatWasKilledEndsWithTheSameHeads) {
  TinyRun run;
  run.config.optimizer.epochs = 30;
  run.config.reports.checkpoint_every = 3;
  run.train("whole");
  const int status = signal_run(run, "killed", 8, SIGKILL);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_FALSE(std::filesystem::exists(run.folder.path() / "killed/heads"));
  EXPECT_TRUE(run.train("killed").complete);
  EXPECT_EQ(heads_bytes(run, "killed"), heads_bytes(run, "whole"));
  EXPECT_EQ(losses(run, "killed"), losses(run, "whole"));
}

TEST(Trainer, ARunWithAPrefixLayerThatWasKilledEndsWithTheSameHeads) {
  TinyRun run;
  run.config.optimizer.epochs = 8;
  run.config.reports.checkpoint_every = 3;
  run.config.accumulate = 2;
  run.config.keep_best = true;
  run.heads.input = HeadInput::PrefixSequential;
  run.train("whole");
  ASSERT_TRUE(WIFSIGNALED(signal_run(run, "killed", 8, SIGKILL)));
  ASSERT_FALSE(std::filesystem::exists(run.folder.path() / "killed/heads"));
  EXPECT_TRUE(run.train("killed").complete);
  EXPECT_EQ(heads_bytes(run, "killed"), heads_bytes(run, "whole"));
  EXPECT_EQ(losses(run, "killed"), losses(run, "whole"));
}

TEST(Trainer, ARunOnSeveralDatasetsThatWasKilledEndsWithTheSameHeads) {
  TinyRun run;
  run.add_dataset("more", 30, 2.5);
  run.add_dataset("rare", 20, 0.5);
  run.config.optimizer.epochs = 12;
  run.config.reports.checkpoint_every = 3;
  run.config.accumulate = 2;
  const TrainResult whole = run.train("whole");
  EXPECT_GT(whole.positions, 12 * (40 + 70 + 5) * 18);
  const int status = signal_run(run, "killed", 8, SIGKILL);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(run.train("killed").complete);
  EXPECT_EQ(heads_bytes(run, "killed"), heads_bytes(run, "whole"));
  EXPECT_EQ(losses(run, "killed"), losses(run, "whole"));

  const HeadsManifest manifest = read_heads_manifest(run.folder.path() / "whole/heads");
  const DatasetReader dataset = run.open_data();
  EXPECT_EQ(manifest.dataset, dataset.fingerprint());
  ASSERT_EQ(manifest.mixed_datasets.size(), 3U);
  EXPECT_TRUE(
      manifest.mixed_datasets[1].starts_with(dataset.sources()[1].fingerprint + " weight 2.5, "));
  run.more[0].weight = 2;
  EXPECT_EQ(
      fixtures::error_text(run.folder, [&] { run.train("whole"); }),
      "<>/whole/train/checkpoint: the checkpoint was made with dataset 2 " +
          dataset.sources()[1].fingerprint + " weight 2.5, this run has dataset 2 " +
          dataset.sources()[1].fingerprint +
          " weight 2, expected the same; set it back to continue, or train anew with --fresh");
}

TEST(Trainer, TheBestValidationsHeadsAreTheResult) {
  TinyRun run;
  run.config.keep_best = true;
  run.config.optimizer.epochs = 6;
  run.config.optimizer.learning_rate = 0.08;  // too large: the last epochs are not the best ones
  const TrainResult result = run.train("best");
  double most = 0;
  int64_t step = 0;
  for (const auto& report : reports(run, "best", "validation"))
    if (report.at("expected_tokens_per_step") > most) {
      most = report.at("expected_tokens_per_step");
      step = report.at("step");
    }
  EXPECT_GT(most, 1);
  EXPECT_EQ(result.steps, step);
  EXPECT_LT(step, std::ssize(losses(run, "best"))) << "this test wants an earlier one";
  EXPECT_EQ(read_heads_manifest(run.folder.path() / "best/heads").step, step);
  const auto heads = heads_bytes(run, "best");
  std::filesystem::remove_all(run.folder / "best/train/checkpoint-best");
  EXPECT_NE(fixtures::error_text(run.folder, [&] { run.train("best"); })
                .find("best/train/checkpoint-best: found no checkpoint, expected that of "),
            std::string::npos);
  EXPECT_EQ(heads_bytes(run, "best"), heads) << "the last ones are not taken instead";
  run.config.keep_best = false;
  run.train("last");
  EXPECT_NE(heads_bytes(run, "best"), heads_bytes(run, "last"));
  EXPECT_EQ(losses(run, "best"), losses(run, "last"));
}

TEST(Trainer, TheBestIsNotAskedForWithoutSamplesThatJudge) {
  TinyRun run;
  run.config.keep_best = true;
  run.config.validation_fraction = 0;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("best"); })
                .find("train.keep_best: train.validation_fraction 0 keeps none of "),
            0U);
}

TEST(Trainer, TheBestOfARunThatWasKilledIsThatOfTheUnbrokenOne) {
  TinyRun run;
  run.config.keep_best = true;
  run.config.keep_checkpoints = 2;
  run.config.optimizer.epochs = 8;
  run.config.optimizer.learning_rate = 0.05;
  run.config.reports.checkpoint_every = 5;
  const TrainResult whole = run.train("whole");
  for (const size_t after : {2U, 9U, 17U}) {
    const std::string name = "killed" + std::to_string(after);
    ASSERT_TRUE(WIFSIGNALED(signal_run(run, name, after, SIGKILL)));
    EXPECT_EQ(run.train(name).steps, whole.steps);
    EXPECT_EQ(heads_bytes(run, name), heads_bytes(run, "whole"));
  }
}

/// Counted by hand: a chain of first drafts that are all right or all wrong.
TEST(ExpectedTokens, AreThoseOfATreeOnTheText) {
  TinyRun run;
  run.config.labels = LabelKind::Hard;
  run.config.optimizer.epochs = 20;
  run.train("a");
  const DatasetReader dataset(run.folder.path() / "dataset");
  const HiddenSource hidden = offline_hidden(dataset);
  const auto all = split_dataset(Random(run.config.seed), dataset, 0.3).validation;
  const auto expected = [&](const MedusaHeads& heads) {
    return expected_tokens_per_step(heads, run.backbone, {dataset, all, hidden});
  };
  const MedusaHeads trained = load_heads(run.folder.path() / "a/heads", run.backbone).heads;
  const MedusaHeads fresh = make_heads(trained.config, run.backbone, trained.kept_tokens, 1);
  EXPECT_GT(expected(trained), expected(fresh) + 0.1);
  EXPECT_GE(expected(fresh), 1);
  EXPECT_LE(expected(trained), 4);  // three heads
  EXPECT_EQ(expected_tokens_per_step(trained, run.backbone, {dataset, {}, hidden}), 0);
}

TEST(Trainer, AnInterruptedRunSavesAndContinues) {
  TinyRun run;
  run.config.optimizer.epochs = 30;
  run.config.reports.checkpoint_every = 100000;
  run.train("whole");
  const int status = signal_run(run, "stopped", 5, SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0) << "it finished before the signal";
  const size_t done = reports(run, "stopped").size();
  const TrainResult rest = run.train("stopped");
  EXPECT_TRUE(rest.complete);
  EXPECT_LT(rest.positions, 30 * 48 * 20);
  EXPECT_EQ(reports(run, "stopped").size(), reports(run, "whole").size());
  EXPECT_LT(done, reports(run, "whole").size());
  EXPECT_EQ(heads_bytes(run, "stopped"), heads_bytes(run, "whole"));
}

TEST(Trainer, AFinishedRunIsNotRepeated) {
  const TinyRun run;
  const TrainResult first = run.train("a");
  const auto before = losses(run, "a");
  const std::string heads = heads_bytes(run, "a");
  const TrainResult again = run.train("a");
  EXPECT_TRUE(again.complete);
  EXPECT_EQ(again.steps, first.steps);
  EXPECT_EQ(again.positions, 0);
  EXPECT_EQ(losses(run, "a"), before);
  EXPECT_EQ(heads_bytes(run, "a"), heads);
}

TEST(Trainer, ValidatesEveryEpochOnSamplesItDoesNotTrainOn) {
  TinyRun run;
  run.train("a");
  const auto validations = reports(run, "a", "validation");
  EXPECT_GE(validations.size(), 2U);
  run.config.validation_fraction = 0;
  EXPECT_TRUE(run.train("b").validation.empty());
}

TEST(Trainer, RefusesACheckpointOfOtherSettings) {
  TinyRun run;
  run.train("a");
  run.config.reports.report_every = 7;  // decides nothing
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }), "(no error)");
  run.config.optimizer.learning_rate = 0.25;
  EXPECT_EQ(
      fixtures::error_text(run.folder, [&] { run.train("a"); }),
      "<>/a/train/checkpoint: the checkpoint was made with train.learning_rate 0.005, this run "
      "has train.learning_rate 0.25, expected the same; set it back to continue, or train anew "
      "with --fresh");
  run.config.optimizer.learning_rate = 5e-3;
  run.heads.layers_per_head = 2;
  EXPECT_EQ(
      fixtures::error_text(run.folder, [&] { run.train("a"); }),
      "<>/a/train/checkpoint: the checkpoint was made with train.heads.layers_per_head 1, this "
      "run has train.heads.layers_per_head 2, expected the same; set it back to continue, or train "
      "anew with --fresh");
}

TEST(Trainer, ALossThatIsNoNumberIsSaidAndKeepsTheCheckpoint) {
  TinyRun run;
  run.config.optimizer.learning_rate = 1e20;  // after a step or two nothing is finite
  run.config.optimizer.clip_norm = 1e30;
  run.config.optimizer.warmup_steps = 0;
  run.config.reports.checkpoint_every = 1;
  const std::string text = fixtures::error_text(run.folder, [&] { run.train("a"); });
  EXPECT_TRUE(text.starts_with("train: step ")) << text;
  EXPECT_NE(text.find(", expected a finite number; "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; <>/a/train/checkpoint is kept")) << text;
  EXPECT_FALSE(std::filesystem::exists(run.folder.path() / "a/heads"));
}

TEST(Trainer, SaysWhichTensorIsNoNumberFromTheStart) {
  TinyRun run;
  run.backbone.embedding = run.backbone.embedding.clone();
  run.backbone.embedding[7][3] = std::nan("");  // the heads read it, the states do not know it
  run.heads.input = HeadInput::Root;
  const std::string text = fixtures::error_text(run.folder, [&] { run.train("a"); });
  EXPECT_TRUE(text.starts_with("train: step 0, made of samples ")) << text;
  EXPECT_NE(text.find("the loss is nan, and so is something in embedding, expected a finite "
                      "number; download or make that file again, or distil again"),
            std::string::npos)
      << text;
}

TEST(Trainer, RefusesADatasetOfAnotherBackbone) {
  TinyRun run;
  run.backbone.fingerprint = "tiny:2";
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "train: the dataset was written by the backbone tiny:1, the backbone given is tiny:2, "
            "expected the same one; pass the other backbone or distil again");
}

TEST(Trainer, RefusesStatesThatAreNotThere) {
  TinyRun run(/*with_hidden=*/false);
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "train: the dataset holds no hidden states and no backbone is loaded, expected one of "
            "them; distil with record_hidden: true");
  run.config.hidden = HiddenFrom::Offline;
  EXPECT_EQ(
      fixtures::error_text(run.folder, [&] { run.train("a"); }),
      "train: 'hidden' is cached, the dataset holds no hidden states, expected those of all; set "
      "it to auto, or distil with record_hidden: true and no states_budget_mb");
  run.add_dataset("more", 5, 1);
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("b"); }),
            "train: 'hidden' is cached, <>/dataset holds no hidden states, expected those of all; "
            "set it to auto, or distil with record_hidden: true and no states_budget_mb");
}

TEST(Trainer, RefusesAnOutputLargerThanTheVocabulary) {
  TinyRun run;
  run.heads.output_size = 131;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "heads: 'output_size' is 131, the backbone's vocabulary has 130 tokens, expected at "
            "most that many; lower it, or set 'output' to shared or own");
}

TEST(Trainer, RefusesAShareOfTheGradientForALayerThatIsNotThere) {
  TinyRun run;
  run.config.trunk_gradient = 0.25;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "train: 'trunk_gradient' is 0.25, and heads of input root have no prefix layer whose "
            "gradient it shares out, expected 1; leave it out, or set heads.input to prefix or "
            "prefix_sequential");
}

TEST(Trainer, RefusesARankAboveTheStatesSize) {
  TinyRun run;
  run.heads.output = HeadOutput::TruncatedLowRank;
  run.heads.output_rank = 96;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "heads: 'output_rank' is 96, the backbone's states have 64 numbers, expected at most "
            "that many; lower it, or set 'output' to truncated_own");
  run.heads = {.output_size = 100, .correction_rank = 96};
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "heads: 'correction_rank' is 96, the backbone's embeddings have 64 numbers, expected "
            "at most that many; lower it");
}

}  // namespace
}  // namespace medusa
