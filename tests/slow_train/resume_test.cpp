// kill -9 at random moments, in either stage: the continued run ends with the bytes of the unbroken
// one.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/random.h"
#include "tests/train/child_run.h"
#include "tests/train/tiny_joint.h"

namespace medusa {
namespace {

constexpr int kMoments = 10;  // of each stage

/// How far a run is let go: so many reports and a part of the next step.
struct Moment {
  explicit Moment(int trial, size_t most_reports) {
    const Random random = Random(20261).child(static_cast<uint64_t>(trial));
    reports =
        static_cast<size_t>(random.uniform(RandomUse::Init, 0) * static_cast<double>(most_reports));
    microseconds = static_cast<int64_t>(random.uniform(RandomUse::Init, 1) * 20000);
  }
  size_t reports = 0;
  int64_t microseconds = 0;
};

/// Trains in a process of its own, twice killed, then to its end here.
template <typename Train>
void kill_twice_and_finish(const Train& train, const std::filesystem::path& metrics, int trial,
                           size_t most_reports) {
  for (const int again : {0, 1}) {
    const Moment moment(2 * trial + again, most_reports);
    SCOPED_TRACE(moment.reports);
    const pid_t child = fork();
    if (child == 0) {
      train();
      _exit(0);
    }
    int status = 0;
    bool ended = false;
    while (!ended && reports_in(metrics, "train").size() < moment.reports) {
      ended = waitpid(child, &status, WNOHANG) == child;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(moment.microseconds));
    if (ended) continue;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  ASSERT_TRUE(train().complete);
}

TEST(Resume, HeadsKilledAtRandomMomentsEndWithTheSameBytes) {
  TinyRun run;
  run.add_dataset("more", 24, 1.5);
  run.config.optimizer.epochs = 12;
  run.config.accumulate = 2;
  run.config.batch_positions = 60;
  run.config.reports.checkpoint_every = 4;
  run.config.keep_checkpoints = 2;
  run.config.keep_best = true;
  run.heads.input = HeadInput::Sequential;
  run.heads.output = HeadOutput::TruncatedLowRank;
  run.heads.output_rank = 32;
  run.train("whole");
  const auto losses = [&](const std::string& name) {
    std::vector<double> values;
    for (const auto& report : reports_in(run.metrics(name), "train"))
      values.push_back(report.at("loss_nats"));
    return values;
  };
  const size_t steps = losses("whole").size();
  for (int trial = 0; trial < kMoments; ++trial) {
    SCOPED_TRACE(trial);
    const std::string name = "killed" + std::to_string(trial);
    kill_twice_and_finish([&] { return run.train(name); }, run.metrics(name), trial, steps);
    for (const char* file : {"heads/heads.safetensors", "heads/manifest.yaml"})
      EXPECT_EQ(read_file(run.folder.path() / name / file),
                read_file(run.folder.path() / "whole" / file));
    EXPECT_EQ(losses(name), losses("whole"));
  }
}

TEST(Resume, JointRunsKilledAtRandomMomentsEndWithTheSameBytes) {
  TinyJoint run;
  run.add_dataset("more", 16, 0.5);
  run.joint.optimizer.epochs = 3;
  run.joint.accumulate = 2;
  run.joint.lora.dropout = 0.2;
  run.joint.lora.targets = all_targets();
  run.train_jointly("whole");
  const auto state = [&](const std::string& name) {
    return read_file(run.folder.path() / name / "train/checkpoint/state.safetensors");
  };
  const size_t steps = reports_in(run.metrics("whole"), "train").size();
  for (int trial = 0; trial < kMoments; ++trial) {
    SCOPED_TRACE(trial);
    const std::string name = "killed" + std::to_string(trial);
    kill_twice_and_finish([&] { return run.train_jointly(name); }, run.metrics(name), 50 + trial,
                          steps);
    EXPECT_EQ(state(name), state("whole"));
    EXPECT_EQ(reports_in(run.metrics(name), "train").size(), steps);
  }
}

}  // namespace
}  // namespace medusa
