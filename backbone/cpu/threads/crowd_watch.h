// How many of a pool's threads should run where other processes want the same CPUs.
#pragma once

#include <cstdint>

namespace medusa {

/// Threads with barriers between them run at the speed of the one that has just lost its CPU, and
/// lose most of their time where all CPUs are shared. So the watch counts how often threads are
/// preempted, which on CPUs of their own they hardly are. Where it happens it leaves threads out,
/// at most half of them, and tries again later with one more.
///
/// Thread safety: none.
class CrowdWatch {
 public:
  explicit CrowdWatch(int num_threads) : num_threads_(num_threads), running_(num_threads) {}

  /// Threads that should run: half of them, rounded up, to all.
  int num_running() const { return running_; }

  /// Takes in what a run has seen.
  /// @param begin        seconds, as is end.
  /// @param preemptions  of the threads that ran in it.
  void note(double begin, double end, int64_t preemptions);

 private:
  void decide(double now, bool crowded);

  const int num_threads_;
  int running_;
  bool is_trial_ = false;              // with one thread more than before
  int64_t preemptions_ = 0;            // since the window began
  double window_ = 0, last_ = 0;       // where a window began, where the last run ended
  double pause_ = 0, next_trial_ = 0;  // between two trials, and when
};

/// How often the calling thread has lost its CPU to another one since it began.
int64_t preemptions_of_this_thread();

}  // namespace medusa
