#include "train/joint/joint_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/replace_folder.h"
#include "data/dataset/sample_order.h"
#include "tests/base/error_text.h"
#include "tests/train/child_run.h"
#include "tests/train/tiny_joint.h"
#include "train/head_trainer.h"
#include "train/lr_schedule.h"
#include "train/train_plan.h"

namespace medusa {
namespace {

std::vector<nlohmann::json> lines_of(const TinyJoint& run, const std::string& name,
                                     const std::string& kind) {
  return reports_in(run.metrics(name), kind);
}

/// All bytes of the last checkpoint: parameters and moments.
std::string state_bytes(const TinyJoint& run, const std::string& name) {
  return read_file(run.folder.path() / name / "train/checkpoint/state.safetensors");
}

TEST(JointRun, LearnsAndStaysNearTheBackbone) {
  TinyJoint run;
  run.config.labels = LabelKind::Hard;  // the text follows other rules than the random backbone
  run.joint.optimizer.epochs = 12;
  run.joint.heads_weight = 1;
  run.joint.optimizer.learning_rate = 1e-3;
  const JointResult result = run.train_jointly("a");
  ASSERT_TRUE(result.complete);
  EXPECT_FALSE(result.stopped);
  const auto validations = lines_of(run, "a", "validation");
  ASSERT_EQ(validations.size(), 2U);
  EXPECT_LT(validations[1]["loss_nats"], validations[0]["loss_nats"].get<double>() - 0.3);
  const auto guards = lines_of(run, "a", "guard");
  EXPECT_EQ(static_cast<int64_t>(guards.size()), (result.steps + 2) / 3);
  EXPECT_GT(guards.back()["guard_kl_nats"], 1e-5);
  EXPECT_LT(guards.back()["guard_kl_nats"], 1.0);
  const auto reports = lines_of(run, "a", "train");
  EXPECT_EQ(static_cast<int64_t>(reports.size()), result.steps);
  EXPECT_NEAR(reports.back()["heads_weight"], 1, 1e-9);
  EXPECT_LT(reports.front()["heads_weight"], 0.1);
}

/// The same steps by hand: which batches, ramp, rate and dropout belong to a step.
TEST(JointRun, ItsStepsAreThoseOfThePlan) {
  TinyJoint run;
  run.joint.accumulate = 2;
  run.joint.lora.dropout = 0.3;
  const JointResult result = run.train_jointly("a");
  const DatasetReader dataset(run.folder.path() / "dataset");
  MedusaHeads heads = run.first_heads();
  TunedLlama llama(run.backbone, run.joint, run.config.seed);
  JointTrainer trainer(run.config, run.joint, dataset, heads, llama);
  const JointPlan plan = plan_joint(run.config, run.joint, dataset);
  ASSERT_EQ(result.steps, plan.num_steps);
  for (int64_t step = 0; step < plan.num_steps; ++step) {
    const double ramp = std::sin(std::numbers::pi / 2 * static_cast<double>(step + 1) /
                                 static_cast<double>(plan.num_steps));
    trainer.step(plan.batches_of(step), {step, run.joint.heads_weight * ramp,
                                         learning_rate(run.joint.optimizer, step, plan.num_steps)});
  }
  EXPECT_TRUE(at::equal(result.backbone.layers[1].down, llama.merged().layers[1].down));
  EXPECT_TRUE(at::equal(result.heads.blocks[2].weight, heads.blocks[2].weight));
}

TEST(JointRun, TheHeadsThatItBeginsWithStayAsTheyAre) {
  for (const HeadOutput output : {HeadOutput::TruncatedShared, HeadOutput::LowRank}) {
    TinyJoint run(output);
    run.joint.max_steps = 2;
    run.heads.output_rank = 8;
    run.heads.correction_rank = output == HeadOutput::LowRank ? 0 : 4;
    const DatasetReader dataset(run.folder.path() / "dataset");
    const MedusaHeads first = run.first_heads();
    const JointResult result =
        train_joint(run.config, run.joint,
                    {dataset, run.backbone, first, "sha256:5", run.folder.path() / "a/train"});
    const MedusaHeads before = run.first_heads();
    const auto as_it_was = named_parameters(before), given = named_parameters(first),
               trained = named_parameters(result.heads);
    for (size_t i = 0; i < given.size(); ++i) {
      EXPECT_TRUE(at::equal(given[i].second, as_it_was[i].second)) << given[i].first;
      EXPECT_FALSE(at::equal(given[i].second, trained[i].second)) << given[i].first;
    }
  }
}

/// What was trained is what is served: heads and merged backbone, run as decoding runs them, give
/// the validation that training reported. (The authors' trainer went on training the LM head under
/// its heads and did not save it.)
TEST(JointRun, TheMergedBackboneGivesTheValidationOfTraining) {
  TinyJoint run;
  run.joint.lora.targets = all_targets();
  const JointResult result = run.train_jointly("a");
  EXPECT_FALSE(at::allclose(result.backbone.lm_head, run.backbone.lm_head, 1e-4, 1e-4));
  const DatasetReader dataset(run.folder.path() / "dataset");
  Llama llama(result.backbone, Kernels::Reference);
  const HiddenSource hidden = online_hidden(dataset, llama);
  MedusaHeads heads = result.heads;
  const auto rows = rows_of_tokens(heads);
  const BatchRecipe recipe = tiny_recipe(result.backbone, 3, rows);
  const HeadTrainer trainer(run.config, heads, result.backbone);
  std::vector<HeadLoss> losses;
  const SampleSplit split =
      split_samples(Random(run.config.seed), dataset.size(), run.config.validation_fraction);
  for (const int64_t sample : split.validation) {
    const ShuffleBuffer pool(dataset, {&sample, 1}, hidden, recipe);
    trainer.measure(pool.batch(all_positions(pool)), losses);
  }
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(losses[k].quality().loss, result.validation[k].loss, 2e-3) << k;
    EXPECT_NEAR(losses[k].quality().top_10, result.validation[k].top_10, 0.02) << k;
  }
}

int signal_run(const TinyJoint& run, const std::string& name, size_t after, int signal) {
  return train_and_signal([&] { return run.train_jointly(name).complete; }, run.metrics(name),
                          after, signal);
}

TEST(JointRun, ARunThatWasKilledEndsWithTheSameBytes) {
  TinyJoint run;
  run.joint.optimizer.epochs = 3;
  run.joint.accumulate = 2;
  const JointResult whole = run.train_jointly("whole");
  for (const size_t after : {1U, 5U, 9U}) {
    SCOPED_TRACE(after);
    const std::string name = "killed" + std::to_string(after);
    ASSERT_TRUE(WIFSIGNALED(signal_run(run, name, after, SIGKILL)));
    const JointResult result = run.train_jointly(name);
    EXPECT_EQ(result.steps, whole.steps);
    EXPECT_EQ(state_bytes(run, name), state_bytes(run, "whole"));
    EXPECT_EQ(lines_of(run, name, "train").size(), lines_of(run, "whole", "train").size());
  }
}

TEST(JointRun, ARunOnTwoDatasetsThatWasKilledEndsWithTheSameBytes) {
  TinyJoint run;
  run.add_dataset("more", 20, 1.5);
  const JointResult whole = run.train_jointly("whole");
  ASSERT_TRUE(WIFSIGNALED(signal_run(run, "killed", 5, SIGKILL)));
  EXPECT_EQ(run.train_jointly("killed").steps, whole.steps);
  EXPECT_EQ(state_bytes(run, "killed"), state_bytes(run, "whole"));
  run.more.clear();
  EXPECT_LT(run.train_jointly("alone").steps, whole.steps);
}

TEST(JointRun, AnInterruptedRunSavesAndContinues) {
  TinyJoint run;
  run.joint.optimizer.epochs = 3;
  run.joint.reports.checkpoint_every = 100000;
  run.train_jointly("whole");
  const int status = signal_run(run, "stopped", 4, SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0) << "it finished before the signal";
  EXPECT_TRUE(run.train_jointly("stopped").complete);
  EXPECT_EQ(state_bytes(run, "stopped"), state_bytes(run, "whole"));
}

TEST(JointRun, AFinishedRunIsNotRepeatedAndSaysTheSame) {
  TinyJoint run;
  run.joint.accumulate = 4;
  const JointResult first = run.train_jointly("a");
  const std::string state = state_bytes(run, "a");
  const JointResult again = run.train_jointly("a");
  EXPECT_TRUE(again.complete);
  EXPECT_EQ(again.steps, first.steps);
  EXPECT_EQ(again.positions, 0);
  EXPECT_EQ(state_bytes(run, "a"), state);
  ASSERT_TRUE(first.drift && again.drift);
  EXPECT_EQ(again.drift->numbers(), first.drift->numbers());
  EXPECT_EQ(again.validation[0].loss, first.validation[0].loss);
  EXPECT_EQ(lines_of(run, "a", "train").back()["epoch"], 1) << "the last step's batches are fewer";
}

TEST(JointRun, ADriftTooLargeStopsItAndGoesBackToTheLastGoodCheckpoint) {
  TinyJoint run;
  run.joint.optimizer.learning_rate = 3e-2;
  run.joint.optimizer.warmup_steps = 12;
  run.joint.optimizer.epochs = 3;
  const JointResult free = run.train_jointly("free");
  const auto drifts = lines_of(run, "free", "guard");
  ASSERT_GE(drifts.size(), 3U);
  ASSERT_FALSE(free.stopped);
  // Between what the first look finds and the second one.
  const double first = drifts[0]["guard_kl_nats"], second = drifts[1]["guard_kl_nats"];
  ASSERT_LT(first, second);
  run.joint.guard.max_kl = 0.5 * (first + second);
  const JointResult result = run.train_jointly("guarded");
  ASSERT_TRUE(result.stopped);
  EXPECT_TRUE(result.stopped->starts_with("KL ")) << *result.stopped;
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.steps, 3);
  ASSERT_TRUE(result.drift);
  EXPECT_NEAR(result.drift->kl, first, 1e-9);
  EXPECT_EQ(lines_of(run, "guarded", "guard").size(), 2U);
  EXPECT_EQ(run.train_jointly("guarded").steps, 3) << "asking again changes nothing";
}

TEST(JointRun, ALossThatIsNoNumberNamesTheBatchAndKeepsTheCheckpoint) {
  TinyJoint run;
  run.joint.optimizer.epochs = 2;
  run.joint.max_steps = 9;
  run.train_jointly("good");
  const std::string good = state_bytes(run, "good");
  run.backbone.layers[1].down = run.backbone.layers[1].down.clone();
  run.backbone.layers[1].down[3][4] = std::nan("");
  const std::string text = fixtures::error_text(run.folder, [&] { run.train_jointly("bad"); });
  EXPECT_TRUE(text.starts_with("train: step 0, made of samples ")) << text;
  EXPECT_NE(text.find(": the loss is nan, and so is something in layers.1.down, expected a finite "
                      "number; download or make that file again, or distil again; "
                      "<>/bad/train/checkpoint is kept"),
            std::string::npos)
      << text;
  EXPECT_TRUE(folder_is_done(run.folder.path() / "bad/train/checkpoint"));
  EXPECT_EQ(state_bytes(run, "good"), good);
}

TEST(JointRun, RefusesACheckpointOfOtherSettings) {
  TinyJoint run;
  run.joint.max_steps = 3;
  run.train_jointly("a");
  run.joint.reports.report_every = 7;  // decides nothing
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train_jointly("a"); }), "(no error)");
  run.joint.lora.alpha = 99;
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train_jointly("a"); }),
            "<>/a/train/checkpoint: the checkpoint was made with train.joint.lora.alpha 16, this "
            "run has train.joint.lora.alpha 99, expected the same; set it back to continue, or "
            "train anew with --fresh");
  run.joint.lora.alpha = 16;
  run.config.labels = LabelKind::Hard;
  EXPECT_EQ(
      fixtures::error_text(run.folder, [&] { run.train_jointly("a"); }),
      "<>/a/train/checkpoint: the checkpoint was made with train.labels soft, this run has "
      "train.labels hard, expected the same; set it back to continue, or train anew with --fresh");
  run.config.labels = LabelKind::Soft;
  const DatasetReader dataset(run.folder.path() / "dataset");
  const MedusaHeads other = run.first_heads();
  const auto error_with_other_heads = [&] {
    return fixtures::error_text(run.folder, [&] {
      train_joint(run.config, run.joint,
                  {dataset, run.backbone, other, "sha256:6", run.folder.path() / "a/train"});
    });
  };
  EXPECT_EQ(
      error_with_other_heads(),
      "<>/a/train/checkpoint: the checkpoint was made with the first heads sha256:5, this run "
      "has the first heads sha256:6, expected the same; set it back to continue, or train anew "
      "with --fresh");
  run.backbone = tiny_weights(1, tiny_config(), at::kBFloat16);
  EXPECT_EQ(
      fixtures::error_text(run.folder, [&] { run.train_jointly("a"); }),
      "<>/a/train/checkpoint: the checkpoint was made with backbone.dtype float32, this run "
      "has backbone.dtype bfloat16, expected the same; set it back to continue, or train anew "
      "with --fresh");
}

TEST(JointRun, RefusesADatasetOfAnotherBackbone) {
  TinyJoint run;
  run.backbone.fingerprint = "tiny:2";
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train_jointly("a"); }),
            "train: the dataset was written by the backbone tiny:1, the backbone given is tiny:2, "
            "expected the same one; pass the other backbone or distil again");
}

}  // namespace
}  // namespace medusa
