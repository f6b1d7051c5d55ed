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

TEST(ProcessPlace, ReadsWhatMpirunSets) {
  const ProcessPlace place = place_of({{"OMPI_COMM_WORLD_RANK", "3"},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(place.launcher, Launcher::Mpirun);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.count, 4);
  EXPECT_EQ(place.local_rank, 1);
}

TEST(ProcessPlace, ReadsWhatSrunSets) {
  const ProcessPlace place = place_of({{"SLURM_PROCID", "3"},
                                       {"SLURM_NTASKS", "8"},
                                       {"SLURM_STEP_NUM_TASKS", "4"},
                                       {"SLURM_LOCALID", "1"}});
  EXPECT_EQ(place.launcher, Launcher::Srun);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.count, 4);
  EXPECT_EQ(place.local_rank, 1);
}

TEST(ProcessPlace, ReadsWhatTorchrunSets) {
  const ProcessPlace place = place_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}});
  EXPECT_EQ(place.launcher, Launcher::Torchrun);
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.count, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}}).local_rank, 5);
}

TEST(ProcessPlace, BelievesMpirunBeforeTorchrun) {
  const ProcessPlace place = place_of({{"RANK", "0"},
                                       {"WORLD_SIZE", "1"},
                                       {"OMPI_COMM_WORLD_RANK", "1"},
                                       {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(place.launcher, Launcher::Mpirun);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.count, 2);
}

TEST(ProcessPlace, SaysWhatDoesNotFit) {
  EXPECT_EQ(refusal_of({{"RANK", "0"}}),
            "the environment: RANK is set and WORLD_SIZE is not, expected both or neither; start "
            "the processes with mpirun or srun, or unset it");
  EXPECT_EQ(refusal_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "the environment: RANK is 2 and WORLD_SIZE is 2, expected ranks from 0 to one less "
            "than the count; start the processes with mpirun or srun, or unset both");
  for (const char* rank : {"-1", "1x", "", "99999999999999999999"})
    EXPECT_EQ(
        refusal_of({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
        std::string("the environment: OMPI_COMM_WORLD_RANK is '") + rank +
            "', expected a number as a launcher writes it; start the processes with mpirun or "
            "srun, or unset it");
  EXPECT_NE(
      refusal_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "none"}})
          .find("SLURM_LOCALID is 'none'"),
      std::string::npos);
  EXPECT_EQ(refusal_of({{"RANK", "first"}, {"WORLD_SIZE", "2"}}),
            "the environment: RANK is 'first', expected a number as a launcher writes it; start "
            "the processes with mpirun or srun, or unset it");
}

}  // namespace
}  // namespace medusa
