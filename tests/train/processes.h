// Several processes of one training, started with mpirun (tests/train_process).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/yaml_fields.h"
#include "tests/base/temp_folder.h"
#include "tests/train/child_run.h"
#include "tests/train_process/part_settings.h"

namespace medusa {

/// What several processes left.
struct ProcessResults {
  int status = -1;                // mpirun's exit status; 128 + signal when killed
  std::string printed;            // by mpirun
  std::vector<std::string> said;  // by each process, as it threw it; "(killed)": it said nothing
};

/// Processes that are running.
class RunningProcesses {
 public:
  /// @param settings  left for the processes in folder/<name>.yaml.
  RunningProcesses(const fixtures::TempFolder& folder, std::string name, const std::string& part,
                   int64_t count, const PartSettings& settings)
      : folder_(folder.path()), name_(std::move(name)), count_(count) {
    write_file(folder_ / (name_ + ".yaml"), write_config(settings));
    for (int64_t rank = 0; rank < count; ++rank)
      for (const char* what : {"pid", "said", "complete", "stopped"})
        std::filesystem::remove(marked(what, rank));
    mpirun_ = fork();
    if (mpirun_ == 0) start(part);
  }
  RunningProcesses(const RunningProcesses&) = delete;
  RunningProcesses& operator=(const RunningProcesses&) = delete;

  /// Waits until the process has begun.
  pid_t process(int64_t rank) const {
    std::string text;
    for (int i = 0; i < 60000 && text.empty(); ++i) {
      if (std::filesystem::exists(marked("pid", rank))) text = read_file(marked("pid", rank));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return std::stoi(text);
  }

  /// Waits until all have ended.
  ProcessResults wait() const {
    ProcessResults ran;
    int status = 0;
    waitpid(mpirun_, &status, 0);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran.printed = read_file(log());
    for (int64_t rank = 0; rank < count_; ++rank)
      ran.said.push_back(std::filesystem::exists(marked("said", rank))
                             ? read_file(marked("said", rank))
                             : "(killed)");
    return ran;
  }

 private:
  std::filesystem::path marked(const std::string& what, int64_t rank) const {
    return folder_ / (name_ + "." + what + "-" + std::to_string(rank));
  }
  std::filesystem::path log() const { return folder_ / (name_ + ".log"); }

  [[noreturn]] void start(const std::string& part) const {
    const int out = open(log().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int in = open("/dev/null", O_RDONLY);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    const std::string count = std::to_string(count_);
    execl(MEDUSA_MPIRUN, MEDUSA_MPIRUN, "-n", count.c_str(), "--oversubscribe", "--bind-to", "none",
          MEDUSA_TRAIN_PROCESS, part.c_str(), folder_.c_str(), name_.c_str(), nullptr);
    _exit(127);
  }

  std::filesystem::path folder_;
  std::string name_;
  int64_t count_;
  pid_t mpirun_ = -1;
};

/// Starts processes, and waits for them.
/// @param meanwhile  is called while they run.
inline ProcessResults run_processes(
    const fixtures::TempFolder& folder, const std::string& name, const std::string& part,
    int64_t count, const PartSettings& settings,
    const std::function<void(const RunningProcesses&)>& meanwhile = {}) {
  const RunningProcesses running(folder, name, part, count, settings);
  if (meanwhile) meanwhile(running);
  return running.wait();
}

inline void expect_well(const ProcessResults& ran) {
  for (const std::string& said : ran.said) EXPECT_EQ(said, "(no error)") << ran.printed;
  EXPECT_EQ(ran.status, 0) << ran.printed;
  EXPECT_EQ(ran.printed.find("WARNING"), std::string::npos) << ran.printed;
}

/// Returns once a run has reported so many steps.
inline void wait_for_reports(const std::filesystem::path& metrics, size_t count) {
  for (int i = 0; i < 60000 && reports_in(metrics, "train").size() < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// What sends a signal to a process once the run has reported so many steps.
inline auto signal_behind(std::filesystem::path metrics, size_t reports, int64_t rank, int signal) {
  return [=](const RunningProcesses& processes) {
    wait_for_reports(metrics, reports);
    kill(processes.process(rank), signal);
  };
}

}  // namespace medusa
