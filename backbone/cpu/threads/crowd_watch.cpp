#include "backbone/cpu/threads/crowd_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace medusa {
namespace {

// Beside one busy neighbor the thread on its CPU waits half of the time. On CPUs of their own
// threads wait less than a hundredth, though the system may interrupt them a hundred times a
// second.
constexpr double kWindow = .1, kCrowded = .15;

constexpr double kLongestGap = .05;  // between two runs of a window; longer ones say nothing
constexpr double kFirstPause = .5, kLongestPause = 8;  // between two trials

}  // namespace

void CrowdWatch::note(double begin, double end, double waited) {
  if (begin - last_ > kLongestGap) {
    window_ = begin;
    waited_ = 0;
  }
  last_ = end;
  waited_ += waited;
  if (end - window_ < kWindow) return;
  decide(end, waited_ >= kCrowded * (end - window_));
  window_ = end;
  waited_ = 0;
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

int64_t waited_of_this_thread() {
  // Kept open: it is read twice in each pass.
  struct File {
    const int descriptor = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ~File() {
      if (descriptor >= 0) ::close(descriptor);
    }
  };
  thread_local const File file;
  char text[96];
  const ssize_t size = ::pread(file.descriptor, text, sizeof text, 0);
  if (size <= 0) return 0;
  const std::string_view all(text, static_cast<size_t>(size));  // "ran waited slices"
  const size_t blank = all.find(' ');
  if (blank == std::string_view::npos) return 0;
  int64_t waited = 0;
  const auto [end, error] = std::from_chars(text + blank + 1, text + size, waited);
  return error == std::errc() ? waited : 0;
}

}  // namespace medusa
