// What processes exchange: those that mpirun starts through MPI, those that torchrun starts through
// c10d.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <fstream>

#include "tests/base/error_text.h"
#include "tests/train/processes.h"
#include "train/processes/process_group.h"

namespace medusa {
namespace {

/// A part of tests/train_process in three processes, one of which comes too late for the others.
ProcessResults late_in_three(const std::string& part, double timeout_s, StartedBy launcher) {
  const fixtures::TempFolder folder;
  PartSettings settings;
  settings.train.peer_timeout_s = timeout_s;
  const auto began = std::chrono::steady_clock::now();
  ProcessResults ran = run_processes(folder, "a", part, 3, settings, launcher);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(40));
  return ran;
}

class JoinedGroup : public ByEachLauncher {
 protected:
  /// A part of tests/train_process in three processes.
  static ProcessResults in_three(const std::string& part) {
    const fixtures::TempFolder folder;
    return run_processes(folder, "a", part, 3, {}, GetParam());
  }
};
MEDUSA_BY_EACH_LAUNCHER(JoinedGroup);

TEST_P(JoinedGroup, AddsUpInTheOrderOfTheRanks) { expect_well(in_three("sums")); }
TEST_P(JoinedGroup, TakesWhatTheFirstProcessHas) { expect_well(in_three("broadcasts")); }
TEST_P(JoinedGroup, AddsUpLossesAndGradients) { expect_well(in_three("losses")); }
TEST_P(JoinedGroup, DividesTheCpusThatProcessesHaveInCommon) { expect_well(in_three("cpus")); }

TEST_P(JoinedGroup, SaysWhichProcessesComputeOnOneGpu) {
  const ProcessResults ran = in_three("gpus");
  for (const std::string& said : ran.said)
    EXPECT_TRUE(said ==
                    "train: processes 0 and 1 of 3 compute on one GPU, number 0 of their "
                    "machine, expected one of its own for each; start as many processes on a "
                    "machine as it has GPUs" ||
                said == "(killed)")  // by mpirun
        << said;
  EXPECT_EQ(ran.status, 2) << ran.printed;
}

TEST_P(JoinedGroup, SaysWhichProcessHasSomethingElse) {
  const ProcessResults ran = in_three("other_weights");
  EXPECT_EQ(ran.said[0],
            "train: process 2 of 3 holds other weights after step 8 than process 0, expected the "
            "same everywhere; run all of them on machines of one kind with as many threads");
  EXPECT_EQ(ran.status, 2) << ran.printed;
}

TEST_P(JoinedGroup, WaitsNoLongerThanTheTimeout) {
  const ProcessResults ran = late_in_three("late", 1, GetParam());
  EXPECT_EQ(ran.said[0],
            "train: process 1 of 3 did not answer for 1 s, expected it to go on with process 0; "
            "look at what it printed and start all of them again, which continues from the last "
            "checkpoint");
  EXPECT_EQ(ran.status, 2) << ran.printed;
}

// These do not ask who started the processes. gloo stands in for NCCL.
TEST(Collectives, AddUpInTheOrderOfTheRanks) {
  const fixtures::TempFolder folder;
  expect_well(run_processes(folder, "a", "collectives", 3, {}, StartedBy::Torchrun));
}

TEST(Collectives, WaitNoLongerThanTheTimeout) {
  const ProcessResults ran = late_in_three("late_collectives", 2, StartedBy::Torchrun);
  EXPECT_EQ(ran.said[0],
            "train: another process than 0 of 3 did not take part in a sum for 2 s, expected it to "
            "go on; look at what the others printed and start all of them again, which continues "
            "from the last checkpoint");
  EXPECT_NE(ran.said[2], "(no error)");
}

}  // namespace
}  // namespace medusa
