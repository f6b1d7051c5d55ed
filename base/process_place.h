// Which of several processes of one command this is, as their launcher says it: torchrun, mpirun or
// srun. They all use the environment, so this is the one place where settings come from there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace medusa {

struct ProcessPlace {
  int64_t rank = 0;                   // of this process, from 0
  int64_t count = 1;                  // of all processes
  int64_t local_rank = 0;             // among those of this machine
  int64_t local_count = 1;            // processes of this machine
  std::string address = "127.0.0.1";  // of the machine of process 0
  int64_t port = 29500;               // where the processes find each other
  bool has_store = false;             // the launcher itself serves a c10d store there (torchrun)
  std::string attempt = "0";          // how often the launcher has started them again
};

/// The value of an environment variable; nothing if it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

std::optional<std::string> environment_variable(const char* name);

/// One process alone unless a launcher's variables are there. In this order: RANK and WORLD_SIZE
/// (torchrun), OMPI_COMM_WORLD_RANK and _SIZE (mpirun), SLURM_PROCID and SLURM_STEP_NUM_TASKS
/// (srun; the latter, since a batch script itself has SLURM_NTASKS and is no task of it). Process 0
/// is at MASTER_ADDR:MASTER_PORT; where these are not set, at this machine or srun's first one, and
/// at port 29500.
/// @throws UserError  a number that is none, a rank without a count or not below it, a port that
///                    is none, or several machines under mpirun and no MASTER_ADDR.
ProcessPlace process_place(const EnvironmentLookup& variable = environment_variable);

}  // namespace medusa
