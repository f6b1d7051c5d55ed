// How many of a pool's threads should run where other processes want the same CPUs.
#pragma once

#include <cstdint>

namespace medusa {

/// Threads with barriers between them run at the speed of the one that has just lost its CPU, and
/// lose most of their time where all CPUs are shared. So the watch adds up how long threads wait
/// for a CPU, which on CPUs of their own they hardly do. Where they wait it leaves threads out, at
/// most half of them, and tries again later with one more.
///
/// Thread safety: none.
class CrowdWatch {
 public:
  explicit CrowdWatch(int num_threads) : num_threads_(num_threads), running_(num_threads) {}

  /// Threads that should run: half of them, rounded up, to all.
  int num_running() const { return running_; }

  /// Takes in what a run has seen.
  /// @param begin   seconds, as is end.
  /// @param waited  seconds that the threads that ran in it waited for a CPU, added up.
  void note(double begin, double end, double waited);

 private:
  void decide(double now, bool crowded);

  const int num_threads_;
  int running_;
  bool is_trial_ = false;              // with one thread more than before
  double waited_ = 0;                  // since the window began
  double window_ = 0, last_ = 0;       // where a window began, where the last run ended
  double pause_ = 0, next_trial_ = 0;  // between two trials, and when
};

/// Nanoseconds that the calling thread could have run and waited for a CPU since it began, as the
/// kernel's scheduler counts them; 0 where it does not tell.
int64_t waited_of_this_thread();

}  // namespace medusa
