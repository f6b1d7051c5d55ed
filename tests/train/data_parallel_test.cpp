// Heads trained by several processes: forked ones, which meet on this machine's loopback.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/train/processes.h"
#include "tests/train/tiny_run.h"

namespace medusa {
namespace {

/// The tiny run, as one of several processes trains it. What a process must not write goes to a
/// folder of its own.
struct TogetherRun : TinyRun {
  TogetherRun() {
    config.epochs = 6;
    config.batch_positions = 100;
    config.peer_timeout_s = 30;
    config.checkpoint_every = 4;
  }

  /// Process 0 trains in folder/<name>, process 1 in folder/<name>-1.
  std::filesystem::path place(const std::string& name, int64_t rank) const {
    return folder.path() / (rank == 0 ? name : name + "-" + std::to_string(rank));
  }

  ProcessPart part(const std::string& name) const {
    return [this, name](int64_t rank, Peers* peers) {
      const DatasetReader dataset = open_data();
      return train_heads(config, heads,
                         {dataset,
                          backbone,
                          nullptr,
                          place(name, rank) / "heads",
                          place(name, rank) / "train",
                          "settings\n",
                          {},
                          peers})
          .complete;
    };
  }

  /// @returns its process.
  pid_t start(const std::string& name, int64_t rank, int64_t count, int64_t port) const {
    return start_process(folder, name, local_place(rank, count, port), config.peer_timeout_s,
                         part(name));
  }

  /// All at once. @returns what each of them threw.
  std::vector<std::string> train_together(
      const std::string& name, int64_t count,
      const std::function<void(const std::vector<pid_t>&)>& meanwhile = {}) const {
    return run_processes(folder, name, count, config.peer_timeout_s, part(name), meanwhile);
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
};

void expect_same_losses(const std::vector<double>& a, const std::vector<double>& b,
                        double tolerance = 1e-6) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * a[i]) << i;
}

TEST(DataParallel, TwoProcessesGiveTheLossesOfOneWithTwiceTheBatch) {
  TogetherRun run;
  for (const LabelKind labels : {LabelKind::Soft, LabelKind::Hard}) {
    for (const HeadOutput output : {HeadOutput::TruncatedShared, HeadOutput::Own}) {
      const std::string name = fmt::format("run-{}-{}", enum_name(labels), enum_name(output));
      SCOPED_TRACE(name);
      run.config.labels = labels;
      run.heads.output = output;
      run.config.accumulate = labels == LabelKind::Hard ? 2 : 1;
      run.config.batch_positions = 100;
      EXPECT_EQ(run.train_together(name, 2), kBothWell);
      run.config.batch_positions = 200;
      run.train(name + "-alone");
      expect_same_losses(run.losses(name), run.losses(name + "-alone"));
      expect_same_losses(run.losses(name, "validation"), run.losses(name + "-alone", "validation"));
      EXPECT_TRUE(std::filesystem::exists(run.folder / (name + ".complete-1")));
    }
  }
}

TEST(DataParallel, MoreProcessesThanABatchHasPositions) {
  TogetherRun run;
  run.config.epochs = 1;
  run.config.batch_positions = 1;
  run.config.shuffle_positions = 30;  // one or two samples: most processes have none of them
  run.config.validation_fraction = 0.02;
  EXPECT_EQ(run.train_together("many", 4), std::vector<std::string>(4, "(no error)"));
  run.config.batch_positions = 4;
  run.train("alone");
  expect_same_losses(run.losses("many"), run.losses("alone"));
}

TEST(DataParallel, APrefixLayerRunsOverEachProcesssOwnAnswers) {
  TogetherRun run;
  run.heads.input = HeadInput::PrefixSequential;
  EXPECT_EQ(run.train_together("two", 2), kBothWell);
  run.config.batch_positions = 200;
  run.train("alone");
  // Queries of other positions stand beside each other, so sums are rounded in another order.
  expect_same_losses(run.losses("two"), run.losses("alone"), 1e-5);
  expect_same_losses(run.losses("two", "validation"), run.losses("alone", "validation"), 1e-5);
  run.config.epochs = 1;
  run.config.batch_positions = 1;
  run.config.shuffle_positions = 30;  // most processes have none of the answers
  EXPECT_EQ(run.train_together("many", 4), std::vector<std::string>(4, "(no error)"));
}

TEST(DataParallel, TheFirstProcessAloneWrites) {
  const TogetherRun run;
  EXPECT_EQ(run.train_together("a", 2), kBothWell);
  EXPECT_TRUE(std::filesystem::exists(run.folder / "a/heads/DONE"));
  EXPECT_TRUE(std::filesystem::exists(run.folder / "a/train/checkpoint/DONE"));
  EXPECT_FALSE(std::filesystem::exists(run.folder / "a-1"));
}

TEST(DataParallel, AKilledProcessEndsTheRunWhichThenContinuesToTheSameHeads) {
  TogetherRun run;
  run.config.keep_best = true;
  EXPECT_EQ(run.train_together("whole", 2), kBothWell);
  for (const size_t killed : {0U, 1U}) {
    const std::string name = "killed" + std::to_string(killed);
    const auto said = run.train_together(name, 2, [&](const std::vector<pid_t>& processes) {
      run.wait_for_reports(name, 6);
      kill(processes[killed], SIGKILL);
    });
    EXPECT_EQ(said[killed], "(killed)");
    EXPECT_EQ(said[1 - killed],
              fmt::format("train: process {} of 2 ended, or its connection broke, expected it to "
                          "go on with process {}; look at what it printed and start all of them "
                          "again, which continues from the last checkpoint",
                          killed, 1 - killed));
    EXPECT_TRUE(std::filesystem::exists(run.folder / (name + "/train/checkpoint/DONE")));
    EXPECT_FALSE(std::filesystem::exists(run.folder / (name + "/heads")));
    EXPECT_EQ(run.train_together(name, 2), kBothWell);
    EXPECT_EQ(run.heads_bytes(name), run.heads_bytes("whole"));
    EXPECT_EQ(run.losses(name), run.losses("whole"));
  }
}

TEST(DataParallel, AProcessThatHangsEndsTheRunAfterTheTimeout) {
  TogetherRun run;
  run.config.epochs = 60;
  run.config.peer_timeout_s = 1;
  const auto said = run.train_together("hangs", 2, [&](const std::vector<pid_t>& processes) {
    run.wait_for_reports("hangs", 6);
    kill(processes[1], SIGSTOP);
    int status = 0;
    const auto began = std::chrono::steady_clock::now();
    while (waitpid(processes[0], &status, WNOHANG) == 0 &&
           std::chrono::steady_clock::now() - began < std::chrono::seconds(20))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
    kill(processes[1], SIGKILL);
  });
  EXPECT_EQ(said[0],
            "train: process 1 of 2 did not answer for 1 s, expected it to go on with process 0; "
            "look at what it printed and start all of them again, which continues from the last "
            "checkpoint");
}

TEST(DataParallel, AllStopWhenOneIsInterrupted) {
  TogetherRun run;
  run.config.epochs = 60;
  run.config.checkpoint_every = 100000;
  EXPECT_EQ(run.train_together("whole", 2), kBothWell);
  const auto said = run.train_together("stopped", 2, [&](const std::vector<pid_t>& processes) {
    run.wait_for_reports("stopped", 5);
    kill(processes[1], SIGINT);
  });
  EXPECT_EQ(said, kBothWell);
  EXPECT_TRUE(std::filesystem::exists(run.folder / "stopped.stopped-0"));
  EXPECT_TRUE(std::filesystem::exists(run.folder / "stopped.stopped-1"));
  EXPECT_LT(run.losses("stopped").size(), run.losses("whole").size());
  EXPECT_EQ(run.train_together("stopped", 2), kBothWell);
  EXPECT_EQ(run.heads_bytes("stopped"), run.heads_bytes("whole"));
}

TEST(DataParallel, AnotherNumberOfProcessesMayContinueTheSameSteps) {
  TogetherRun run;
  run.config.epochs = 30;
  EXPECT_EQ(run.train_together("whole", 2), kBothWell);
  run.train_together("a", 2, [&](const std::vector<pid_t>& processes) {
    run.wait_for_reports("a", 6);
    kill(processes[1], SIGKILL);
  });
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train("a"); }),
            "<>/a/train/checkpoint: the checkpoint was made with steps of 200 positions (2 "
            "processes together), this run has steps of 100 positions (1 process), expected the "
            "same, as other steps are another training; set train.batch_positions so that it times "
            "the processes is 200, or remove the folder to train anew");
  run.config.batch_positions = 200;
  run.train("a");
  expect_same_losses(run.losses("a"), run.losses("whole"));
}

TEST(DataParallel, ProcessesWithOtherSettingsAreRefused) {
  TogetherRun run;
  const int64_t port = free_port();
  const pid_t first = run.start("a", 0, 2, port);
  run.config.learning_rate = 0.25;
  const pid_t second = run.start("a", 1, 2, port);
  int status = 0;
  waitpid(first, &status, 0);
  waitpid(second, &status, 0);
  for (const char* rank : {"0", "1"})
    EXPECT_EQ(read_file(run.folder / (std::string("a.said-") + rank)),
              "train: process 1 of 2 has other settings or another dataset than process 0, "
              "expected the same everywhere; give all of them the same command, files and "
              "version");
}

}  // namespace
}  // namespace medusa
