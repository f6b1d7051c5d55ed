// Several processes of one training (tests/train_process), started with mpirun, which connects them
// through MPI, or as torchrun starts them, for c10d to connect them.
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
#include "tests/base/free_port.h"
#include "tests/base/temp_folder.h"
#include "tests/train/child_run.h"
#include "tests/train_process/part_settings.h"

namespace medusa {

/// Whose variables the processes have.
enum class StartedBy { Mpirun, Torchrun };

inline const char* name_of(StartedBy launcher) {
  return launcher == StartedBy::Mpirun ? "Mpirun" : "Torchrun";
}

/// Those that the build can be started by.
inline std::vector<StartedBy> launchers() {
#ifdef MEDUSA_MPIRUN
  return {StartedBy::Mpirun, StartedBy::Torchrun};
#else
  return {StartedBy::Torchrun};
#endif
}

/// A test by each of them.
class ByEachLauncher : public testing::TestWithParam<StartedBy> {};

#define MEDUSA_BY_EACH_LAUNCHER(suite)                                \
  INSTANTIATE_TEST_SUITE_P(By, suite, testing::ValuesIn(launchers()), \
                           [](const auto& starter) { return name_of(starter.param); })

/// What several processes left.
struct ProcessResults {
  int status = -1;                // mpirun's exit status, or the first one that is not 0;
                                  // 128 + signal when killed
  std::string printed;            // by all of them
  std::vector<std::string> said;  // by each process, as it threw it; "(killed)": it said nothing
};

/// Processes that are running.
class RunningProcesses {
 public:
  /// @param settings  left for the processes in folder/<name>.yaml.
  RunningProcesses(const fixtures::TempFolder& folder, std::string name, const std::string& part,
                   int64_t count, const PartSettings& settings, StartedBy launcher)
      : folder_(folder.path()), name_(std::move(name)), count_(count) {
    write_file(folder_ / (name_ + ".yaml"), write_config(settings));
    for (int64_t rank = 0; rank < count; ++rank)
      for (const char* what : {"pid", "said", "complete", "stopped"})
        std::filesystem::remove(marked(what, rank));
    std::filesystem::remove(log());
    const std::string port = std::to_string(fixtures::free_port());
    for (int64_t rank = 0; rank < (launcher == StartedBy::Mpirun ? 1 : count); ++rank) {
      started_.push_back(fork());
      if (started_.back() != 0) continue;
      join_log();
      if (launcher == StartedBy::Mpirun) start_mpirun(part);
      start_one(part, rank, port);
    }
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

  /// Waits until it has said how it ended.
  void wait_for_end_of(int64_t rank) const {
    for (int i = 0; i < 60000 && !std::filesystem::exists(marked("said", rank)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  /// Waits until all have ended.
  ProcessResults wait() const {
    ProcessResults ran;
    ran.status = 0;
    for (const pid_t process : started_) {
      int status = 0;
      waitpid(process, &status, 0);
      if (ran.status == 0)
        ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
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

  void join_log() const {
    const int out = open(log().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    const int in = open("/dev/null", O_RDONLY);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    setenv("OMP_NUM_THREADS", "1", 1);
  }

  [[noreturn]] void start_mpirun([[maybe_unused]] const std::string& part) const {
#ifdef MEDUSA_MPIRUN
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    const std::string count = std::to_string(count_);
    execl(MEDUSA_MPIRUN, MEDUSA_MPIRUN, "-n", count.c_str(), "--oversubscribe", "--bind-to", "none",
          MEDUSA_TRAIN_PROCESS, part.c_str(), folder_.c_str(), name_.c_str(), nullptr);
#endif
    _exit(127);
  }

  [[noreturn]] void start_one(const std::string& part, int64_t rank,
                              const std::string& port) const {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(count_).c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", port.c_str(), 1);
    execl(MEDUSA_TRAIN_PROCESS, MEDUSA_TRAIN_PROCESS, part.c_str(), folder_.c_str(), name_.c_str(),
          nullptr);
    _exit(127);
  }

  std::filesystem::path folder_;
  std::string name_;
  int64_t count_;
  std::vector<pid_t> started_;  // mpirun, or all of them
};

/// Starts processes, and waits for them.
/// @param meanwhile  is called while they run.
inline ProcessResults run_processes(
    const fixtures::TempFolder& folder, const std::string& name, const std::string& part,
    int64_t count, const PartSettings& settings, StartedBy launcher,
    const std::function<void(const RunningProcesses&)>& meanwhile = {}) {
  const RunningProcesses running(folder, name, part, count, settings, launcher);
  if (meanwhile) meanwhile(running);
  return running.wait();
}

inline void expect_well(const ProcessResults& ran) {
  for (const std::string& said : ran.said) EXPECT_EQ(said, "(no error)") << ran.printed;
  EXPECT_EQ(ran.status, 0) << ran.printed;
  EXPECT_EQ(ran.printed.find("WARNING"), std::string::npos) << ran.printed;
}

/// What a run left one of whose two processes was killed: the other one ended with a word, by its
/// launcher or by itself.
inline void expect_killed(const ProcessResults& ran, int64_t killed, StartedBy launcher) {
  const std::string rank = std::to_string(killed);
  if (launcher == StartedBy::Mpirun) {
    EXPECT_EQ(ran.status, 128 + SIGKILL);
    EXPECT_NE(ran.printed.find("process rank " + rank + " with PID"), std::string::npos)
        << ran.printed;
    return;
  }
  const std::string& said = ran.said[static_cast<size_t>(1 - killed)];
  EXPECT_TRUE(said.starts_with("train: process " + rank + " of 2 ended, its connection broke, or "))
      << said;
  EXPECT_EQ(ran.said[static_cast<size_t>(killed)], "(killed)");
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

/// Starts two processes and kills one of them once the run has reported so many steps: the run ends
/// with a word and a whole checkpoint.
/// @param run  TogetherRun, JointTogether.
template <typename Run>
void lose_a_process(const Run& run, const std::string& name, int64_t killed, size_t reports) {
  const ProcessResults ran =
      run.train_together(name, 2, signal_behind(run.metrics(name), reports, killed, SIGKILL));
  expect_killed(ran, killed, run.launcher);
  EXPECT_TRUE(std::filesystem::exists(run.folder / (name + "/train/checkpoint/DONE")));
}

}  // namespace medusa
