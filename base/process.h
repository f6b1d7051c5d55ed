// This process: which of several of one command it is, which of the machine's CPUs it may use, and
// how much memory it holds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace medusa {

/// What has started a process.
enum class Launcher { None, Torchrun, Mpirun, Srun };

struct ProcessPlace {
  Launcher launcher = Launcher::None;
  int64_t rank = 0;        // of this process, from 0
  int64_t world_size = 1;  // of all processes
  int64_t local_rank = 0;  // among those of this machine
};

/// The value of an environment variable; nothing if it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

std::optional<std::string> environment_variable(const char* name);

/// This process among those of one command, as their launcher says it: mpirun, srun or torchrun.
/// They all use the environment, so this is the one place where settings come from there.
///
/// One process alone unless a launcher's variables are there. In this order:
/// OMPI_COMM_WORLD_RANK and _SIZE (Open MPI's mpirun), SLURM_PROCID and SLURM_STEP_NUM_TASKS (srun;
/// the latter, since a batch script itself has SLURM_NTASKS and is no task of it), RANK and
/// WORLD_SIZE (torchrun).
/// @throws UserError  a number that is none, a rank without a count or not below it.
ProcessPlace process_place(const EnvironmentLookup& variable = environment_variable);

/// Where processes that no MPI connects find each other.
struct MeetingPoint {
  std::string address;  // MASTER_ADDR: a name or an IP address of process 0's machine
  uint16_t port = 0;    // MASTER_PORT
  bool held = false;    // torchrun itself listens there; otherwise process 0 does
  std::string attempt;  // of torchrun, which starts all again when one fails: "0", "1", …
};

/// As torchrun, or whoever starts the processes, says it.
/// @param count  of processes, to say.
/// @throws UserError  MASTER_ADDR or MASTER_PORT is not set, or the latter is no port.
MeetingPoint meeting_point(int64_t count, const EnvironmentLookup& variable = environment_variable);

/// The numbers of the CPUs that the calling thread may run on, ascending, at least one: fewer than
/// the machine has under taskset, in a batch system's share or in a container with a set of CPUs.
///
/// Thread safety: any thread.
std::vector<int> allowed_cpus();

/// How much main memory the process holds now: bytes, files that are mapped and were touched
/// included; 0: not known.
int64_t memory_in_use();

/// Gives the system what the process has freed and malloc still holds: between tensors that stay,
/// gaps of those that came and went add up. Takes a tenth of a second for a gigabyte.
void give_back_freed_memory();

/// "1.2 GB", or "-" where it is not known.
std::string memory_text(int64_t bytes);

}  // namespace medusa
