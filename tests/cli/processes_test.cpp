// medusa train in two processes, started by mpirun or as torchrun starts them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "../base/free_port.h"
#include "base/folder_lock.h"
#include "program.h"

namespace medusa::cli {
namespace {

/// @param count  of processes: "-n 2 ".
std::string mpirun(const std::string& count) {
  return "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 '" MEDUSA_MPIRUN
         "' --oversubscribe --bind-to none " +
         count;
}

ProcessResult run_both(const CliFixture& place, const std::string& arguments) {
  return place.run_with(mpirun("-n 2 "), arguments);
}

/// What torchrun sets.
std::string torchrun(int rank, int port) {
  return fmt::format("RANK={} LOCAL_RANK={} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={} ",
                     rank, rank, port);
}

int64_t count_of(const std::string& text, const std::string& word) {
  int64_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

class Processes : public DistilledRun {};

TEST_F(Processes, TrainTheHeadsOfOneWithTwiceTheBatch) {
  const ProcessResult both = run_both(
      place_, "train --config run.yaml --json --dtype float32 --set train.batch_positions=32");
  ASSERT_EQ(both.status, 0) << both.err;
  const auto together = nlohmann::json::parse(both.out);  // process 1 prints nothing
  EXPECT_EQ(count_of(both.err, "report: "), 1) << both.err;
  EXPECT_EQ(together.at("complete"), true);

  const ProcessResult ran = place_.run(
      "train --config run.yaml --json --dtype float32 --set run=runs/alone --set "
      "train.data='[runs/tiny/dataset]'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto alone = nlohmann::json::parse(ran.out);
  EXPECT_EQ(together.at("steps"), alone.at("steps"));
  EXPECT_EQ(together.at("positions"), alone.at("positions"));
  const double loss = alone.at("loss");
  EXPECT_NEAR(together.at("loss"), loss, 1e-6 * loss);

  const ProcessResult inspected = place_.run("inspect runs/tiny/heads");
  EXPECT_NE(inspected.out.find("# 2 processes, each with train.batch_positions"), std::string::npos)
      << inspected.out;
}

TEST_F(Processes, TorchrunsGiveTheBytesOfMpiruns) {
  const std::string train = "train --config run.yaml --json --set train.batch_positions=32 ";
  const ProcessResult by_mpirun = run_both(place_, train);
  ASSERT_EQ(by_mpirun.status, 0) << by_mpirun.err;
  EXPECT_NE(by_mpirun.err.find("2 processes, sums through MPI\n"), std::string::npos)
      << by_mpirun.err;
  const std::string heads = file_text(place_ / "runs/tiny/heads/heads.safetensors");
  const std::string other = train +
                            "--set run=runs/other --set train.data='[runs/tiny/dataset]' --set "
                            "train.peer_timeout_s=60 ";
  const int port = fixtures::free_port();
  const ProcessResult ran =
      place_.run_with("{ env " + torchrun(1, port) + "'" MEDUSA_BINARY "' " + other +
                          ">second.txt 2>&1 </dev/null & }; env " + torchrun(0, port),
                      other + ">first.txt 2>first-err.txt; first=$?; wait $! && (exit $first)");
  ASSERT_EQ(ran.status, 0) << file_text(place_ / "first-err.txt");
  const std::string said = file_text(place_ / "first-err.txt");
  EXPECT_NE(said.find("2 processes, sums through gloo\n"), std::string::npos) << said;
  EXPECT_EQ(file_text(place_ / "second.txt"), "") << "the first one alone prints";
  EXPECT_EQ(nlohmann::json::parse(file_text(place_ / "first.txt")).at("complete"), true);
  EXPECT_EQ(file_text(place_ / "runs/other/heads/heads.safetensors"), heads);
}

TEST_F(Processes, TrainBackboneAndHeadsOfOneThatAccumulatesTwiceAsMuch) {
  const std::string joint =
      "train --config run.yaml --json --dtype float32 --set train.stages='[heads, joint]' --set "
      "train.joint.batch_tokens=100 --set train.joint.guard.samples=2 --set "
      "train.joint.guard.greedy_tokens=8 --set train.joint.lora.rank=4 ";
  const ProcessResult both = run_both(place_, joint + "--set train.batch_positions=32");
  ASSERT_EQ(both.status, 0) << both.err;
  const auto together = nlohmann::json::parse(both.out).at("joint");
  EXPECT_EQ(count_of(both.err, "report: "), 1) << both.err;
  EXPECT_EQ(together.at("complete"), true);

  const ProcessResult ran = place_.run(joint +
                                       "--set train.joint.accumulate=2 --set run=runs/alone --set "
                                       "train.data='[runs/tiny/dataset]'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto alone = nlohmann::json::parse(ran.out).at("joint");
  for (const char* same : {"steps", "positions"}) EXPECT_EQ(together.at(same), alone.at(same));
  EXPECT_GT(alone.at("peak_bytes"), 1'000'000) << "of this stage";
  const double loss = alone.at("loss"), drift = alone.at("guard_kl_nats");
  EXPECT_NEAR(together.at("loss"), loss, 1e-6 * loss);
  EXPECT_NEAR(together.at("guard_kl_nats"), drift, 1e-3 * drift) << "itself near nothing";
  const ProcessResult inspected = place_.run("inspect runs/tiny/joint/heads");
  EXPECT_NE(inspected.out.find("# 2 processes, each with train.joint.accumulate"),
            std::string::npos)
      << inspected.out;
}

TEST_F(Processes, AllEndWhereAnotherCommandWrites) {
  const FolderLock other(place_ / "runs/tiny", "medusa distill");
  const ProcessResult both = run_both(place_, "train --config run.yaml");
  EXPECT_EQ(both.status, 2);
  EXPECT_NE(both.err.find("medusa: runs/tiny: medusa distill (process "), std::string::npos)
      << both.err;
}

TEST_F(Processes, OneWithOtherSettingsIsRefused) {
  const auto error = [&](const std::string& other) {
    const std::string train = "train --config run.yaml ";
    const ProcessResult both =
        place_.run_with(mpirun("-n 1 "), train + ": -n 1 '" MEDUSA_BINARY "' " + train + other);
    EXPECT_EQ(both.status, 2) << both.err;
    return both.err;
  };
  for (const char* other : {"--set train.report_every=7", "--set train.stages=[joint]"})
    EXPECT_NE(error(other).find("medusa: train: process 1 of 2 has other settings than process 0, "
                                "expected the same everywhere; give all of them the same command "
                                "and files\n"),
              std::string::npos)
        << other;
}

TEST_F(Processes, ASignalToOneEndsAllWithACheckpoint) {
  const std::string long_run = "train --config run.yaml --set train.epochs=9999 --json ";
  const ProcessResult both = place_.run_with(
      mpirun("-n 1 "),
      long_run + ": -n 1 timeout --foreground --preserve-status 4 '" MEDUSA_BINARY "' " + long_run);
  EXPECT_EQ(both.status, 143) << both.err;
  EXPECT_EQ(count_of(both.err, "interrupted; run the same command again to continue"), 1)
      << both.err;
  EXPECT_EQ(nlohmann::json::parse(both.out).at("complete"), false);
  const ProcessResult inspected = place_.run("inspect runs/tiny/train/checkpoint");
  EXPECT_EQ(inspected.status, 0) << inspected.err;
}

TEST_F(Processes, OneThatEndsByTheSignalToAnotherDoesNotExitWithSuccess) {
  const std::string long_run = "train --config run.yaml --set train.epochs=9999 ";
  const int port = fixtures::free_port();
  const ProcessResult ran =
      place_.run_with("{ env " + torchrun(1, port) +
                          "timeout --foreground --preserve-status 4 '" MEDUSA_BINARY "' " +
                          long_run + ">second.txt 2>&1 </dev/null & }; env " + torchrun(0, port),
                      long_run + "; first=$?; wait $!; echo \"$first $?\"");
  EXPECT_TRUE(ran.out.ends_with("143 143\n")) << ran.out << ran.err;
}

TEST_F(Processes, WhatCannotWorkIsTheUsersError) {
  const auto error = [&](const std::string& variables, const std::string& arguments) {
    const ProcessResult ran = place_.run_as(variables, "train --config run.yaml " + arguments);
    EXPECT_EQ(ran.status, 2) << ran.err;
    return ran.err;
  };
  const int port = fixtures::free_port();
  EXPECT_EQ(error(torchrun(0, port), "--dry-run"),
            "medusa: train: --dry-run was given to 2 processes, expected one; start it without "
            "mpirun, srun or torchrun, it tells what each process takes\n");
  EXPECT_EQ(error(torchrun(0, port), "--set train.peer_timeout_s=1"),
            fmt::format("medusa: train: process 1 of 2 did not come to 127.0.0.1:{} within 1 s, "
                        "expected all of them there; look at what it printed, and start all with "
                        "the same MASTER_ADDR and MASTER_PORT\n",
                        port));
  EXPECT_EQ(error("RANK=0 WORLD_SIZE=2 MASTER_PORT=1 ", ""),
            "medusa: the environment: MASTER_ADDR is not set for 2 processes, expected MASTER_ADDR "
            "and MASTER_PORT, where process 0 listens; start the processes with torchrun, or set "
            "both, to 127.0.0.1 and a free port on one machine\n");
  // srun without its plugin for MPI: each process is alone.
  EXPECT_NE(error("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 ", "")
                .find("the environment says process 1 of 2, MPI says 0 of 1, expected the same; "),
            std::string::npos);
}

}  // namespace
}  // namespace medusa::cli
