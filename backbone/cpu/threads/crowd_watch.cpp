#include "backbone/cpu/threads/crowd_watch.h"

#include <sys/resource.h>

#include <algorithm>

namespace medusa {
namespace {

// A time slice is about 3 ms: beside one busy neighbor a pool of two is preempted 100 to 300 times
// a second, on CPUs of its own less than 10 times.
constexpr double kWindow = .1, kCrowdedPerSecond = 40;

constexpr double kLongestGap = .05;  // between two runs of a window; longer ones say nothing
constexpr double kFirstPause = .5, kLongestPause = 8;  // between two trials

}  // namespace

void CrowdWatch::note(double begin, double end, int64_t preemptions) {
  if (begin - last_ > kLongestGap) {
    window_ = begin;
    preemptions_ = 0;
  }
  last_ = end;
  preemptions_ += preemptions;
  if (end - window_ < kWindow) return;
  decide(end, static_cast<double>(preemptions_) >= kCrowdedPerSecond * (end - window_));
  window_ = end;
  preemptions_ = 0;
}

/// Once for each window. A trial is one window.
void CrowdWatch::decide(double now, bool crowded) {
  if (crowded) {
    pause_ = is_trial_ ? std::min(2 * pause_, kLongestPause) : kFirstPause;
    next_trial_ = now + pause_;
    running_ = std::max(running_ - 1, (num_threads_ + 1) / 2);
    is_trial_ = false;
  } else if (is_trial_ || now >= next_trial_) {
    is_trial_ = running_ < num_threads_;
    running_ = std::min(running_ + 1, num_threads_);
  }
}

int64_t preemptions_of_this_thread() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace medusa
