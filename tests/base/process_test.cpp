#include "base/process.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "tests/base/busy_cpus.h"
#include "tests/base/error_text.h"
#include "tests/base/under_asan.h"

namespace medusa {
namespace {

using Variables = std::map<std::string, std::string>;

EnvironmentLookup among(const Variables& variables) {
  return [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

ProcessPlace place_of(const Variables& variables) { return process_place(among(variables)); }
MeetingPoint meeting_of(const Variables& variables) { return meeting_point(2, among(variables)); }

std::string refusal_of(const Variables& variables) {
  return fixtures::error_text([&] { place_of(variables); });
}

TEST(ProcessPlace, IsAloneWithoutALauncher) {
  EXPECT_EQ(place_of({}).world_size, 1);
  EXPECT_EQ(place_of({}).rank, 0);
  // A batch script, which is none of srun's tasks.
  EXPECT_EQ(place_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).world_size, 1);
}

TEST(ProcessPlace, ReadsWhatMpirunSets) {
  const ProcessPlace place = place_of({{"OMPI_COMM_WORLD_RANK", "3"},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(place.launcher, Launcher::Mpirun);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.world_size, 4);
  EXPECT_EQ(place.local_rank, 1);
}

TEST(ProcessPlace, ReadsWhatSrunSets) {
  const ProcessPlace place = place_of({{"SLURM_PROCID", "3"},
                                       {"SLURM_NTASKS", "8"},
                                       {"SLURM_STEP_NUM_TASKS", "4"},
                                       {"SLURM_LOCALID", "1"}});
  EXPECT_EQ(place.launcher, Launcher::Srun);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.world_size, 4);
  EXPECT_EQ(place.local_rank, 1);
}

TEST(ProcessPlace, ReadsWhatTorchrunSets) {
  const ProcessPlace place = place_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}});
  EXPECT_EQ(place.launcher, Launcher::Torchrun);
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.world_size, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}}).local_rank, 5);
}

TEST(ProcessPlace, TakesMpirunBeforeTorchrun) {
  const ProcessPlace place = place_of({{"RANK", "0"},
                                       {"WORLD_SIZE", "1"},
                                       {"OMPI_COMM_WORLD_RANK", "1"},
                                       {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(place.launcher, Launcher::Mpirun);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 2);
}

TEST(ProcessPlace, SaysWhatDoesNotFit) {
  EXPECT_EQ(refusal_of({{"RANK", "0"}}),
            "the environment: RANK is set and WORLD_SIZE is not, expected both or neither; start "
            "the processes with mpirun, srun or torchrun, or unset it");
  EXPECT_EQ(refusal_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "the environment: RANK is 2 and WORLD_SIZE is 2, expected ranks from 0 to one less "
            "than the count; start the processes with mpirun, srun or torchrun, or unset both");
  for (const char* rank : {"-1", "1x", "", "99999999999999999999"})
    EXPECT_EQ(refusal_of({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
              std::string("the environment: OMPI_COMM_WORLD_RANK is '") + rank +
                  "', expected a number as a launcher writes it; start the processes with mpirun, "
                  "srun or torchrun, or unset it");
  EXPECT_NE(
      refusal_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "none"}})
          .find("SLURM_LOCALID is 'none'"),
      std::string::npos);
  EXPECT_EQ(refusal_of({{"RANK", "first"}, {"WORLD_SIZE", "2"}}),
            "the environment: RANK is 'first', expected a number as a launcher writes it; start "
            "the processes with mpirun, srun or torchrun, or unset it");
}

TEST(MeetingPoint, IsWhatTorchrunSets) {
  const Variables variables{{"MASTER_ADDR", "node-1"}, {"MASTER_PORT", "29500"}};
  const MeetingPoint point = meeting_of(variables);
  EXPECT_EQ(point.address, "node-1");
  EXPECT_EQ(point.port, 29500);
  EXPECT_FALSE(point.held);
  EXPECT_EQ(point.attempt, "0");
  Variables of_torchrun = variables;
  of_torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  of_torchrun["TORCHELASTIC_RESTART_COUNT"] = "3";
  EXPECT_TRUE(meeting_of(of_torchrun).held);
  EXPECT_EQ(meeting_of(of_torchrun).attempt, "3");
}

TEST(MeetingPoint, SaysWhatIsMissing) {
  const auto refusal = [](const Variables& variables) {
    return fixtures::error_text([&] { meeting_of(variables); });
  };
  const std::string rest =
      " is not set for 2 processes, expected MASTER_ADDR and MASTER_PORT, where process 0 listens; "
      "start the processes with torchrun, or set both, to 127.0.0.1 and a free port on one machine";
  EXPECT_EQ(refusal({}), "the environment: MASTER_ADDR" + rest);
  EXPECT_EQ(refusal({{"MASTER_PORT", "1"}}), "the environment: MASTER_ADDR" + rest);
  EXPECT_EQ(refusal({{"MASTER_ADDR", "a"}}), "the environment: MASTER_PORT" + rest);
  for (const char* port : {"0", "65536", "-1", "x"})
    EXPECT_EQ(refusal({{"MASTER_ADDR", "node-1"}, {"MASTER_PORT", port}}),
              std::string("the environment: MASTER_PORT is '") + port +
                  "', expected a number from 1 to 65535; set it to a free port of MASTER_ADDR, "
                  "'node-1'");
}

TEST(AllowedCpus, AreThoseOfTheCallingThread) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  for (const int cpu : all) {
    std::vector<int> seen;
    std::thread([&] {
      fixtures::stay_on({cpu});
      seen = allowed_cpus();
    }).join();
    EXPECT_EQ(seen, std::vector<int>{cpu});
  }
  EXPECT_EQ(allowed_cpus(), all);
}

TEST(MemoryUse, GrowsByWhatIsTouched) {
  const int64_t before = memory_in_use();
  ASSERT_GT(before, 0);
  std::vector<char> block(64 << 20, 1);
  const int64_t grown = memory_in_use() - before;
  EXPECT_GT(grown, 60 << 20);
  EXPECT_LT(grown, 80 << 20);
  EXPECT_EQ(block[1000], 1);
}

#ifndef MEDUSA_ASAN
TEST(MemoryUse, OfWhatWasFreedIsGivenBackOnRequest) {
  // Small enough for malloc's heap, and every second one stays, so that it cannot shrink.
  std::vector<std::vector<char>> blocks;
  for (int i = 0; i < 2048; ++i) blocks.emplace_back(64 << 10, 1);
  for (size_t i = 0; i < blocks.size(); i += 2) std::vector<char>().swap(blocks[i]);
  const int64_t before = memory_in_use();
  give_back_freed_memory();
  EXPECT_GT(before - memory_in_use(), 50 << 20);
  EXPECT_EQ(blocks[1][1000], 1);
}
#endif

TEST(MemoryUse, IsWrittenInGigabytes) {
  EXPECT_EQ(memory_text(1234567890), "1.2 GB");
  EXPECT_EQ(memory_text(0), "-");
}

}  // namespace
}  // namespace medusa
