// A training run in a process of its own, which is sent a signal, and what its metrics say.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/interrupt.h"

namespace medusa {

/// The whole lines of one kind, "train" or another, in a metrics.jsonl that may still grow.
inline std::vector<nlohmann::json> reports_in(const std::filesystem::path& metrics,
                                              const std::string& kind) {
  std::vector<nlohmann::json> reports;
  if (!std::filesystem::exists(metrics)) return reports;
  std::istringstream text(read_file(metrics));
  for (std::string line; std::getline(text, line);) {
    auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json["kind"] == kind) reports.push_back(std::move(json));
  }
  return reports;
}

/// Trains in another process and sends it the signal once it has reported so many steps.
/// @param train  returns whether the run was completed, which makes exit status 1.
/// @returns  its status, as waitpid gives it.
template <typename Train>
int train_and_signal(const Train& train, const std::filesystem::path& metrics, size_t after,
                     int signal) {
  const pid_t child = fork();
  if (child == 0) {
    install_interrupt_handler();
    _exit(train() ? 1 : 0);
  }
  int status = 0;
  while (reports_in(metrics, "train").size() < after) {
    if (waitpid(child, &status, WNOHANG) == child) return status;  // it ended by itself
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, signal);
  waitpid(child, &status, 0);
  return status;
}

}  // namespace medusa
