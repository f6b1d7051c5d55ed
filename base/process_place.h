// Which of several processes of one command this is, as their launcher says it: mpirun, srun or
// torchrun. They all use the environment, so this is the one place where settings come from there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace medusa {

/// What has started a process.
enum class Launcher { None, Torchrun, Mpirun, Srun };

struct ProcessPlace {
  Launcher launcher = Launcher::None;
  int64_t rank = 0;        // of this process, from 0
  int64_t count = 1;       // of all processes
  int64_t local_rank = 0;  // among those of this machine
};

/// The value of an environment variable; nothing if it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

std::optional<std::string> environment_variable(const char* name);

/// One process alone unless a launcher's variables are there. In this order:
/// OMPI_COMM_WORLD_RANK and _SIZE (Open MPI's mpirun), SLURM_PROCID and SLURM_STEP_NUM_TASKS (srun;
/// the latter, since a batch script itself has SLURM_NTASKS and is no task of it), RANK and
/// WORLD_SIZE (torchrun).
/// @throws UserError  a number that is none, a rank without a count or not below it.
ProcessPlace process_place(const EnvironmentLookup& variable = environment_variable);

}  // namespace medusa
