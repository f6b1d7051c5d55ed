// Heads trained by several processes, which mpirun or torchrun starts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/yaml_fields.h"
#include "tests/base/error_text.h"
#include "tests/train/processes.h"
#include "tests/train/tiny_run.h"

namespace medusa {
namespace {

/// The tiny run, as several processes train it (tests/train_process).
struct TogetherRun : TinyRun {
  explicit TogetherRun(StartedBy starts) : launcher(starts) {
    config.optimizer.epochs = 6;
    config.batch_positions = 100;
    config.peer_timeout_s = 30;
    config.reports.checkpoint_every = 4;
  }

  PartSettings settings() const { return {config, heads, {}}; }

  /// Process 0 trains in folder/<name>, process 1 must not write in folder/<name>-1.
  ProcessResults train_together(
      const std::string& name, int64_t count,
      const std::function<void(const RunningProcesses&)>& meanwhile = {}) const {
    return run_processes(folder, name, "heads", count, settings(), launcher, meanwhile);
  }

  void wait_for_reports(const std::string& name, size_t count) const {
    medusa::wait_for_reports(metrics(name), count);
  }

  std::vector<double> losses(const std::string& name, const std::string& kind = "train") const {
    std::vector<double> values;
    for (const auto& report : reports_in(metrics(name), kind))
      values.push_back(report["loss_nats"]);
    return values;
  }

  std::string heads_bytes(const std::string& name) const {
    return read_file(folder.path() / name / "heads/heads.safetensors");
  }

  StartedBy launcher;
};

void expect_same_losses(const std::vector<double>& a, const std::vector<double>& b,
                        double tolerance = 1e-6) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * a[i]) << i;
}

class DataParallel : public ByEachLauncher {};
MEDUSA_BY_EACH_LAUNCHER(DataParallel);

TEST_P(DataParallel, TwoProcessesGiveTheLossesOfOneWithTwiceTheBatch) {
  TogetherRun run(GetParam());
  for (const LabelKind labels : {LabelKind::Soft, LabelKind::Hard}) {
    for (const HeadOutput output : {HeadOutput::TruncatedShared, HeadOutput::Own}) {
      const std::string name = fmt::format("run-{}-{}", enum_name(labels), enum_name(output));
      SCOPED_TRACE(name);
      run.config.labels = labels;
      run.heads.output = output;
      run.config.accumulate = labels == LabelKind::Hard ? 2 : 1;
      run.config.batch_positions = 100;
      expect_well(run.train_together(name, 2));
      run.config.batch_positions = 200;
      run.train(name + "-alone");
      expect_same_losses(run.losses(name), run.losses(name + "-alone"));
      expect_same_losses(run.losses(name, "validation"), run.losses(name + "-alone", "validation"));
      EXPECT_TRUE(std::filesystem::exists(run.folder / (name + ".complete-1")));
    }
  }
}

TEST_P(DataParallel, MoreProcessesThanABatchHasPositions) {
  TogetherRun run(GetParam());
  run.config.optimizer.epochs = 1;
  run.config.batch_positions = 1;
  run.config.shuffle_positions = 30;  // one or two samples: most processes have none of them
  run.config.validation_fraction = 0.02;
  expect_well(run.train_together("many", 4));
  run.config.batch_positions = 4;
  run.train("alone");
  expect_same_losses(run.losses("many"), run.losses("alone"));
}

TEST_P(DataParallel, APrefixLayerRunsOverEachProcesssOwnAnswers) {
  TogetherRun run(GetParam());
  run.heads.input = HeadInput::PrefixSequential;
  expect_well(run.train_together("two", 2));
  run.config.batch_positions = 200;
  run.train("alone");
  // Queries of other positions stand beside each other, so sums are rounded in another order.
  expect_same_losses(run.losses("two"), run.losses("alone"), 1e-5);
  expect_same_losses(run.losses("two", "validation"), run.losses("alone", "validation"), 1e-5);
  run.config.optimizer.epochs = 1;
  run.config.batch_positions = 1;
  run.config.shuffle_positions = 30;  // most processes have none of the answers
  expect_well(run.train_together("many", 4));
}

TEST_P(DataParallel, TheFirstProcessAloneWrites) {
  const TogetherRun run(GetParam());
  expect_well(run.train_together("a", 2));
  EXPECT_TRUE(std::filesystem::exists(run.folder / "a/heads/DONE"));
  EXPECT_TRUE(std::filesystem::exists(run.folder / "a/train/checkpoint/DONE"));
  EXPECT_FALSE(std::filesystem::exists(run.folder / "a-1"));
}

TEST_P(DataParallel, AKilledProcessEndsTheRunWhichThenContinuesToTheSameHeads) {
  TogetherRun run(GetParam());
  run.config.keep_best = true;
  expect_well(run.train_together("whole", 2));
  for (const int64_t killed : {0, 1}) {
    const std::string name = "killed" + std::to_string(killed);
    lose_a_process(run, name, killed, 6);
    EXPECT_FALSE(std::filesystem::exists(run.folder / (name + "/heads")));
    expect_well(run.train_together(name, 2));
    EXPECT_EQ(run.heads_bytes(name), run.heads_bytes("whole"));
    EXPECT_EQ(run.losses(name), run.losses("whole"));
  }
}

TEST(DataParallelSums, AreTheSameBytesByEveryLauncher) {
  std::vector<std::string> heads;
  for (const StartedBy launcher : launchers())
    for (const char* name : {"first", "second"}) {
      TogetherRun run(launcher);
      run.config.optimizer.epochs = 1;
      run.config.batch_positions = 30;
      expect_well(run.train_together(name, 3));
      heads.push_back(run.heads_bytes(name));
    }
  for (const std::string& bytes : heads) EXPECT_EQ(bytes, heads[0]);
}

TEST_P(DataParallel, AProcessThatHangsEndsTheRunAfterTheTimeout) {
  TogetherRun run(GetParam());
  run.config.optimizer.epochs = 60;
  run.config.peer_timeout_s = 1;
  const auto began = std::chrono::steady_clock::now();
  const ProcessResults ran = run.train_together("hangs", 2, [&](const RunningProcesses& processes) {
    signal_behind(run.metrics("hangs"), 6, 1, SIGSTOP)(processes);
    if (GetParam() == StartedBy::Mpirun) return;  // which ends the other one
    processes.wait_for_end_of(0);
    kill(processes.process(1), SIGKILL);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  EXPECT_EQ(ran.said[0],
            "train: process 1 of 2 did not answer for 1 s, expected it to go on with process 0; "
            "look at what it printed and start all of them again, which continues from the last "
            "checkpoint");
  EXPECT_EQ(ran.status, 2) << ran.printed;
}

TEST_P(DataParallel, AllStopWhenOneIsInterrupted) {
  TogetherRun run(GetParam());
  run.config.optimizer.epochs = 60;
  run.config.reports.checkpoint_every = 100000;
  expect_well(run.train_together("whole", 2));
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = fmt::format("stopped{}", signal);
    SCOPED_TRACE(name);
    expect_well(run.train_together(
        name, 2, signal_behind(run.metrics(name), 5, signal == SIGTERM ? 1 : 0, signal)));
    EXPECT_TRUE(std::filesystem::exists(run.folder / (name + ".stopped-0")));
    EXPECT_TRUE(std::filesystem::exists(run.folder / (name + ".stopped-1")));
    EXPECT_LT(run.losses(name).size(), run.losses("whole").size());
    expect_well(run.train_together(name, 2));
    EXPECT_EQ(run.heads_bytes(name), run.heads_bytes("whole"));
  }
}

TEST_P(DataParallel, AnotherNumberOfProcessesMayContinueTheSameSteps) {
  TogetherRun run(GetParam());
  run.config.optimizer.epochs = 30;
  expect_well(run.train_together("whole", 2));
  run.train_together("a", 2, signal_behind(run.metrics("a"), 6, 1, SIGKILL));
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "<>/a/train/checkpoint: the checkpoint was made with steps of 200 positions (2 "
            "processes together), this run has steps of 100 positions (1 process), expected the "
            "same, as other steps are another training; set train.batch_positions so that it times "
            "the processes is 200, or train anew with --fresh");
  run.config.batch_positions = 200;
  run.train("a");
  expect_same_losses(run.losses("a"), run.losses("whole"));
}

TEST_P(DataParallel, ProcessesWithOtherSettingsAreRefused) {
  TogetherRun run(GetParam());
  PartSettings other = run.settings();
  other.train.optimizer.learning_rate = 0.25;
  write_file(run.folder / "a-1.yaml", write_config(other));
  const ProcessResults ran = run.train_together("a", 2);
  EXPECT_EQ(ran.status, 2) << ran.printed;
  const std::string expected =
      "train: process 1 of 2 has other settings or another dataset than process 0, expected the "
      "same everywhere; give all of them the same command, files and version";
  EXPECT_TRUE(ran.said[0] == expected || ran.said[1] == expected) << ran.said[0] << ran.said[1];
}

}  // namespace
}  // namespace medusa
