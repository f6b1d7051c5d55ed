#include "base/process_place.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

using Variables = std::map<std::string, std::string>;

ProcessPlace place_of(const Variables& variables) {
  return process_place([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal_of(const Variables& variables) {
  return fixtures::error_text([&] { place_of(variables); });
}

TEST(ProcessPlace, IsAloneWithoutALauncher) {
  EXPECT_EQ(place_of({}).count, 1);
  EXPECT_EQ(place_of({}).rank, 0);
  // A batch script, which is none of srun's tasks.
  EXPECT_EQ(place_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).count, 1);
}

TEST(ProcessPlace, ReadsWhatTorchrunSets) {
  const ProcessPlace place = place_of({{"RANK", "5"},
                                       {"WORLD_SIZE", "8"},
                                       {"LOCAL_RANK", "1"},
                                       {"LOCAL_WORLD_SIZE", "4"},
                                       {"MASTER_ADDR", "first"},
                                       {"MASTER_PORT", "4711"},
                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                       {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.count, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_count, 4);
  EXPECT_EQ(place.address, "first");
  EXPECT_EQ(place.port, 4711);
  EXPECT_TRUE(place.has_store);
  EXPECT_EQ(place.attempt, "2");
}

TEST(ProcessPlace, ReadsWhatMpirunSets) {
  const Variables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const ProcessPlace place = place_of(variables);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.count, 2);
  EXPECT_EQ(place.address, "127.0.0.1");
  EXPECT_EQ(place.port, 29500);
  EXPECT_FALSE(place.has_store);
  Variables two_machines = variables;
  two_machines.insert_or_assign("OMPI_COMM_WORLD_LOCAL_SIZE", std::string("1"));
  EXPECT_EQ(refusal_of(two_machines),
            "the environment: 1 of 2 processes are on this machine and MASTER_ADDR is not set, "
            "expected the address of process 0; start them with mpirun -x MASTER_ADDR=<its "
            "machine>");
}

TEST(ProcessPlace, ReadsWhatSrunSets) {
  Variables variables{{"SLURM_PROCID", "3"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                      {"SLURM_STEP_NODELIST", "node[03-04]"}};
  const ProcessPlace place = place_of(variables);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.count, 4);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_count, 2);
  EXPECT_EQ(place.address, "node03");
  for (const auto& [list, first] :
       Variables{{"a,b", "a"}, {"a,b[1-2]", "a"}, {"gpu[7,9]", "gpu7"}, {"gpu[7]", "gpu7"}}) {
    variables["SLURM_STEP_NODELIST"] = list;
    EXPECT_EQ(place_of(variables).address, first) << list;
  }
}

TEST(ProcessPlace, SaysWhatDoesNotFit) {
  EXPECT_EQ(refusal_of({{"RANK", "0"}}),
            "the environment: RANK is set and WORLD_SIZE is not, expected both or neither; start "
            "the processes with torchrun, or unset it");
  EXPECT_EQ(refusal_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "the environment: RANK is 2 and WORLD_SIZE is 2, expected ranks from 0 to one less "
            "than the count; start the processes with torchrun, mpirun or srun, or unset both");
  EXPECT_EQ(refusal_of({{"RANK", "first"}, {"WORLD_SIZE", "2"}}),
            "the environment: RANK is 'first', expected a number as a launcher writes it; start "
            "the processes with torchrun, mpirun or srun, or unset it");
  for (const char* port : {"0", "65536", "70000", "-1", "29500(x2)", "1e3", ""})
    EXPECT_EQ(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", port}}),
              std::string("the environment: MASTER_PORT is '") + port +
                  "', expected a number from 1 to 65535; set it to a port of process 0's machine "
                  "that is free, or unset it");
}

}  // namespace
}  // namespace medusa
