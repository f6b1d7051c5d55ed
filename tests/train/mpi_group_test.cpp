// What processes exchange, in processes that mpirun starts.
#include <gtest/gtest.h>

#include "tests/train/processes.h"
#include "train/processes/process_group.h"

namespace medusa {
namespace {

/// A part of tests/train_process in three processes.
ProcessResults in_three(const std::string& part, const PartSettings& settings = {}) {
  const fixtures::TempFolder folder;
  return run_processes(folder, "a", part, 3, settings);
}

TEST(MpiGroup, AddsUpInTheOrderOfTheRanks) { expect_well(in_three("sums")); }
TEST(MpiGroup, TakesWhatTheFirstProcessHas) { expect_well(in_three("broadcasts")); }
TEST(MpiGroup, AddsUpLossesAndGradients) { expect_well(in_three("losses")); }
TEST(MpiGroup, DividesTheCpusThatProcessesHaveInCommon) { expect_well(in_three("cpus")); }

TEST(MpiGroup, SaysWhichProcessHasSomethingElse) {
  const ProcessResults ran = in_three("other_weights");
  EXPECT_EQ(ran.said[0],
            "train: process 2 of 3 holds other weights after step 8 than process 0, expected the "
            "same everywhere; run all of them on machines of one kind with as many threads");
  EXPECT_EQ(ran.status, 2) << ran.printed;
}

TEST(MpiGroup, WaitsNoLongerThanTheTimeout) {
  PartSettings settings;
  settings.train.peer_timeout_s = 1;
  const auto began = std::chrono::steady_clock::now();
  const ProcessResults ran = in_three("late", settings);
  EXPECT_EQ(ran.said[0],
            "train: process 1 of 3 did not answer for 1 s, expected it to go on with process 0; "
            "look at what it printed and start all of them again, which continues from the last "
            "checkpoint");
  EXPECT_EQ(ran.status, 2) << ran.printed;
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20))
      << "mpirun ends the one that is late";
}

}  // namespace
}  // namespace medusa
