#include "base/process.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <numeric>
#include <thread>

#include "base/error.h"

namespace medusa {
namespace {

/// The variables of one launcher.
struct LauncherNames {
  Launcher launcher;
  const char *rank, *count, *local_rank;
};
constexpr LauncherNames kLaunchers[] = {
    {Launcher::Mpirun, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {Launcher::Srun, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    // Last: images of clusters set its variables for everybody.
    {Launcher::Torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK"}};

/// The number that a text is; nothing if it is none.
std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int64_t number_from(const EnvironmentLookup& variable, const char* name, int64_t fallback) {
  const auto text = variable(name);
  if (!text) return fallback;
  const auto value = whole_number(*text);
  if (!value || *value < 0)
    throw UserError(fmt::format(
        "the environment: {} is '{}', expected a number as a launcher writes it; start the "
        "processes with mpirun, srun or torchrun, or unset it",
        name, *text));
  return *value;
}

bool is_started_by(const EnvironmentLookup& variable, const LauncherNames& names) {
  const bool rank = variable(names.rank).has_value(), count = variable(names.count).has_value();
  // Only torchrun's are told to the user: a batch script has one of srun's and is no task of it.
  if (rank != count && names.launcher == Launcher::Torchrun)
    throw UserError(
        fmt::format("the environment: {} is set and {} is not, expected both or neither; start the "
                    "processes with mpirun, srun or torchrun, or unset it",
                    rank ? names.rank : names.count, rank ? names.count : names.rank));
  return rank && count;
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

ProcessPlace process_place(const EnvironmentLookup& variable) {
  for (const LauncherNames& names : kLaunchers) {
    if (!is_started_by(variable, names)) continue;
    ProcessPlace place;
    place.launcher = names.launcher;
    place.rank = number_from(variable, names.rank, 0);
    place.world_size = number_from(variable, names.count, 1);
    if (place.rank >= place.world_size)
      throw UserError(fmt::format(
          "the environment: {} is {} and {} is {}, expected ranks from 0 to one less than the "
          "count; start the processes with mpirun, srun or torchrun, or unset both",
          names.rank, place.rank, names.count, place.world_size));
    place.local_rank = number_from(variable, names.local_rank, place.rank);
    return place;
  }
  return {};
}

MeetingPoint meeting_point(int64_t count, const EnvironmentLookup& variable) {
  const auto address = variable("MASTER_ADDR"), port = variable("MASTER_PORT");
  if (!address || !port)
    throw UserError(fmt::format(
        "the environment: {} is not set for {} processes, expected MASTER_ADDR and MASTER_PORT, "
        "where process 0 listens; start the processes with torchrun, or set both, to 127.0.0.1 and "
        "a free port on one machine",
        address ? "MASTER_PORT" : "MASTER_ADDR", count));
  const auto number = whole_number(*port);
  if (!number || *number < 1 || *number > std::numeric_limits<uint16_t>::max())
    throw UserError(fmt::format(
        "the environment: MASTER_PORT is '{}', expected a number from 1 to 65535; set it to a free "
        "port of MASTER_ADDR, '{}'",
        *port, *address));
  return {*address, static_cast<uint16_t>(*number),
          variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True",
          variable("TORCHELASTIC_RESTART_COUNT").value_or("0")};
}

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {  // a machine of more than 1,024
    std::vector<int> all(std::max(1U, std::thread::hardware_concurrency()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  return cpus;
}

int64_t memory_in_use() {
  std::ifstream in("/proc/self/statm");  // in pages: all, resident, …
  int64_t all = 0, resident = 0;
  in >> all >> resident;
  return in ? resident * sysconf(_SC_PAGESIZE) : 0;
}

void give_back_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

std::string memory_text(int64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace medusa
