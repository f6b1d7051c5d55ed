#include "base/process_place.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace medusa {
namespace {

/// The variables of one launcher.
struct LauncherNames {
  const char *rank, *count, *local_rank, *local_count;
};
constexpr LauncherNames kTorchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr LauncherNames kMpirun{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr LauncherNames kSrun{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                              "SLURM_STEP_TASKS_PER_NODE"};

/// The digits that the text begins with: srun writes "4(x2)" for two machines of four tasks.
std::optional<int64_t> leading_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool ends = end == text.data() + text.size() || *end == '(' || *end == ',';
  if (error != std::errc() || !ends) return std::nullopt;
  return value;
}

int64_t number_from(const EnvironmentLookup& variable, const char* name, int64_t fallback) {
  const auto text = variable(name);
  if (!text) return fallback;
  const auto value = leading_number(*text);
  if (!value || *value < 0)
    throw UserError(fmt::format(
        "the environment: {} is '{}', expected a number as a launcher writes it; start the "
        "processes with torchrun, mpirun or srun, or unset it",
        name, *text));
  return *value;
}

/// As a launcher writes it; else what it is when nobody says.
int64_t port_from(const EnvironmentLookup& variable, int64_t fallback) {
  const auto text = variable("MASTER_PORT");
  if (!text) return fallback;
  int64_t port = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error != std::errc() || end != text->data() + text->size() || port < 1 || port > 65535)
    throw UserError(
        fmt::format("the environment: MASTER_PORT is '{}', expected a number from 1 to 65535; set "
                    "it to a port of process 0's machine that is free, or unset it",
                    *text));
  return port;
}

bool is_started_by(const EnvironmentLookup& variable, const LauncherNames& names) {
  const bool rank = variable(names.rank).has_value(), count = variable(names.count).has_value();
  // Only torchrun's are told to the user: a batch script has one of srun's and is no task of it.
  if (rank != count && &names == &kTorchrun)
    throw UserError(
        fmt::format("the environment: {} is set and {} is not, expected both or neither; start the "
                    "processes with torchrun, or unset it",
                    rank ? names.rank : names.count, rank ? names.count : names.rank));
  return rank && count;
}

/// The first machine of srun's list: "node[03-05,9],login" -> "node03".
std::string first_machine(const std::string& list) {
  const size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || (comma != std::string::npos && comma < bracket))
    return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

std::string address_of_first(const EnvironmentLookup& variable, const LauncherNames& names,
                             const ProcessPlace& place) {
  if (const auto given = variable("MASTER_ADDR")) return *given;
  if (place.local_count >= place.count) return place.address;
  if (&names == &kSrun)
    if (const auto list = variable("SLURM_STEP_NODELIST")) return first_machine(*list);
  throw UserError(
      fmt::format("the environment: {} of {} processes are on this machine and MASTER_ADDR is not "
                  "set, expected "
                  "the address of process 0; start them with mpirun -x MASTER_ADDR=<its machine>",
                  place.local_count, place.count));
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

ProcessPlace process_place(const EnvironmentLookup& variable) {
  for (const LauncherNames* names : {&kTorchrun, &kMpirun, &kSrun}) {
    if (!is_started_by(variable, *names)) continue;
    ProcessPlace place;
    place.rank = number_from(variable, names->rank, 0);
    place.count = number_from(variable, names->count, 1);
    if (place.rank >= place.count)
      throw UserError(fmt::format(
          "the environment: {} is {} and {} is {}, expected ranks from 0 to one less than the "
          "count; start the processes with torchrun, mpirun or srun, or unset both",
          names->rank, place.rank, names->count, place.count));
    place.local_rank = number_from(variable, names->local_rank, place.rank);
    place.local_count = number_from(variable, names->local_count, place.count);
    place.address = address_of_first(variable, *names, place);
    place.port = port_from(variable, place.port);
    place.has_store = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
    place.attempt = variable("TORCHELASTIC_RESTART_COUNT").value_or(place.attempt);
    return place;
  }
  return {};
}

}  // namespace medusa
