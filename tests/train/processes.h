// Several processes of one training, forked, which meet on this machine's loopback.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/train/child_run.h"
#include "tests/train/free_port.h"
#include "train/processes/peers.h"

namespace medusa {

/// What one of them does. @returns whether its run was completed.
using ProcessPart = std::function<bool(int64_t rank, Peers* peers)>;

/// Leaves <name>.complete-<rank> or .stopped-<rank> in the folder, and in .said-<rank> what it
/// threw.
/// @returns its process.
inline pid_t start_process(const fixtures::TempFolder& folder, const std::string& name,
                           const ProcessPlace& place, double timeout, const ProcessPart& part) {
  const pid_t child = fork();
  if (child != 0) return child;
  install_interrupt_handler();
  const std::string rank = std::to_string(place.rank);
  const std::string text = fixtures::error_text(folder, [&] {
    const auto peers = join_peers(place, timeout);
    const bool complete = part(place.rank, peers.get());
    write_file(folder / (name + (complete ? ".complete-" : ".stopped-") + rank), "");
  });
  write_file(folder / (name + ".said-" + rank), text);
  _exit(0);
}

/// All at once. @returns what each of them threw.
inline std::vector<std::string> run_processes(
    const fixtures::TempFolder& folder, const std::string& name, int64_t count, double timeout,
    const ProcessPart& part, const std::function<void(const std::vector<pid_t>&)>& meanwhile = {}) {
  const int64_t port = free_port();
  std::vector<pid_t> processes;
  for (int64_t rank = 0; rank < count; ++rank)
    processes.push_back(start_process(folder, name, local_place(rank, count, port), timeout, part));
  if (meanwhile) meanwhile(processes);
  std::vector<std::string> said;
  for (int64_t rank = 0; rank < count; ++rank) {
    int status = 0;
    waitpid(processes[static_cast<size_t>(rank)], &status, 0);
    const auto file = folder / (name + ".said-" + std::to_string(rank));
    said.push_back(std::filesystem::exists(file) ? read_file(file) : "(killed)");
    std::filesystem::remove(file);
  }
  return said;
}

/// Returns once a run has reported so many steps.
inline void wait_for_reports(const std::filesystem::path& metrics, size_t count) {
  for (int i = 0; i < 60000 && reports_in(metrics, "train").size() < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline const std::vector<std::string> kBothWell(2, "(no error)");

}  // namespace medusa
