// The joint stage in several processes, which mpirun or torchrun starts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"
#include "tests/train/processes.h"
#include "tests/train/tiny_joint.h"

namespace medusa {
namespace {

/// The tiny joint run, as several processes train it (tests/train_process).
struct JointTogether : TinyJoint {
  explicit JointTogether(StartedBy starts) : launcher(starts) {
    config.peer_timeout_s = 30;
    joint.lora.targets = all_targets();
    joint.lora.dropout = 0.1;
    joint.batch_tokens = 60;
    joint.optimizer.epochs = 2;
  }

  ProcessResults train_together(
      const std::string& name, int64_t count,
      const std::function<void(const RunningProcesses&)>& meanwhile = {}) const {
    return run_processes(folder, name, "joint", count, {config, heads, joint}, launcher, meanwhile);
  }

  std::vector<double> values(const std::string& name, const std::string& kind,
                             const std::string& key) const {
    std::vector<double> out;
    for (const auto& report : reports_in(metrics(name), kind)) out.push_back(report[key]);
    return out;
  }

  void expect_same(const std::string& a, const std::string& b) const {
    for (const auto& [kind, key] : {std::pair{"train", "loss_nats"},
                                    {"train", "backbone_loss_nats"},
                                    {"validation", "loss_nats"},
                                    {"guard", "guard_kl_nats"}}) {
      const std::vector<double> left = values(a, kind, key), right = values(b, kind, key);
      ASSERT_EQ(left.size(), right.size()) << kind;
      ASSERT_FALSE(left.empty()) << kind;
      for (size_t i = 0; i < left.size(); ++i)
        EXPECT_NEAR(left[i], right[i], 1e-5 * std::max(left[i], 0.01)) << key << " " << i;
    }
  }

  std::string state_bytes(const std::string& name) const {
    return read_file(folder.path() / name / "train/checkpoint/state.safetensors");
  }

  StartedBy launcher;
};

class JointParallel : public ByEachLauncher {};
MEDUSA_BY_EACH_LAUNCHER(JointParallel);

TEST_P(JointParallel, ProcessesTrainWhatOneDoesThatAccumulatesAsManyTimesAsMuch) {
  for (const HeadInput input : {HeadInput::Root, HeadInput::Prefix}) {
    for (const int64_t count : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", enum_name(input), count));
      JointTogether run(GetParam());
      run.heads.input = input;
      run.joint.accumulate = 2;
      expect_well(run.train_together("together", count));
      run.joint.accumulate = 2 * count;
      EXPECT_TRUE(run.train_jointly("alone").complete);
      run.expect_same("together", "alone");
    }
  }
}

TEST_P(JointParallel, WholeLayersToo) {
  JointTogether run(GetParam());
  run.joint.part = TrainedPart::LastLayers;
  run.joint.last_layers = 1;
  expect_well(run.train_together("together", 2));
  run.joint.accumulate = 2;
  EXPECT_TRUE(run.train_jointly("alone").complete);
  run.expect_same("together", "alone");
}

TEST_P(JointParallel, MoreProcessesThanBatches) {
  JointTogether run(GetParam());
  run.joint.optimizer.epochs = 1;
  run.joint.batch_tokens = 100000;  // one batch
  expect_well(run.train_together("many", 3));
  EXPECT_TRUE(run.train_jointly("alone").complete);
  run.expect_same("many", "alone");
}

TEST_P(JointParallel, AKilledProcessEndsTheRunWhichThenContinuesToTheSameBytes) {
  JointTogether run(GetParam());
  run.joint.optimizer.epochs = 6;
  expect_well(run.train_together("whole", 2));
  for (const int64_t killed : {0, 1}) {
    const std::string name = "killed" + std::to_string(killed);
    lose_a_process(run, name, killed, 5);
    expect_well(run.train_together(name, 2));
    EXPECT_EQ(run.state_bytes(name), run.state_bytes("whole"));
    EXPECT_EQ(run.values(name, "train", "loss_nats"), run.values("whole", "train", "loss_nats"));
  }
  EXPECT_FALSE(std::filesystem::exists(run.folder / "whole-1")) << "the first one alone writes";
}

TEST_P(JointParallel, AllGoBackWhenTheGuardOfTheFirstSaysSo) {
  JointTogether run(GetParam());
  run.joint.guard.max_kl = 1e-9;
  expect_well(run.train_together("drifts", 2));
  for (const char* rank : {"0", "1"})
    EXPECT_TRUE(std::filesystem::exists(run.folder / (std::string("drifts.complete-") + rank)));
  EXPECT_EQ(run.values("drifts", "guard", "guard_kl_nats").size(), 1);
  EXPECT_EQ(run.values("drifts", "train", "loss_nats").size(), 3) << "to the first checkpoint";
  const auto last = reports_in(run.metrics("drifts"), "validation").back();
  EXPECT_EQ(last["loss_nats"], reports_in(run.metrics("drifts"), "validation").front()["loss_nats"])
      << "what is left is where it began";
}

TEST_P(JointParallel, AllStopWhenOneIsInterrupted) {
  JointTogether run(GetParam());
  run.joint.optimizer.epochs = 20;
  run.joint.reports.checkpoint_every = 100000;
  expect_well(run.train_together("whole", 2));
  expect_well(
      run.train_together("stopped", 2, signal_behind(run.metrics("stopped"), 4, 1, SIGINT)));
  for (const char* rank : {"0", "1"})
    EXPECT_TRUE(std::filesystem::exists(run.folder / (std::string("stopped.stopped-") + rank)));
  expect_well(run.train_together("stopped", 2));
  EXPECT_EQ(run.state_bytes("stopped"), run.state_bytes("whole"));
}

TEST_P(JointParallel, AnotherNumberOfProcessesMustMakeTheSameSteps) {
  JointTogether run(GetParam());
  run.joint.optimizer.epochs = 6;
  run.joint.accumulate = 2;
  run.train_together("a", 2, signal_behind(run.metrics("a"), 5, 1, SIGKILL));
  EXPECT_EQ(fixtures::error_text(run.folder, [&] { run.train_jointly("a"); }),
            "<>/a/train/checkpoint: the checkpoint was made with steps of 4 batches (2 processes "
            "together), this run has steps of 2 batches (1 process), expected the same, as other "
            "steps are another training; set train.joint.accumulate so that it times the processes "
            "is 4, or train anew with --fresh");
  run.joint.accumulate = 4;
  EXPECT_TRUE(run.train_jointly("a").complete);
}

}  // namespace
}  // namespace medusa
