// The time that a grammar may take.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

#include "base/error.h"

namespace medusa {

/// Ends a text whose grammar reads it in so many ways that each token takes longer than the one
/// before: all sequences wait for it. Time of the calling thread's own is counted, and that of
/// short calls is not.
///
/// Thread safety: none.
class CallBudget {
 public:
  using Duration = std::chrono::nanoseconds;

  /// The text has so many tokens, drafted ones included.
  void reach(int64_t num_tokens) {
    const int64_t more = num_tokens - std::exchange(longest_, std::max(longest_, num_tokens));
    if (more > 0) left_ = std::min<Duration>(left_ + more * kOfToken, kMost);
  }

  /// @throws UserError  too much time has gone.
  void spend(Duration time) {
    if (time < kShort) return;
    left_ -= time;
    if (left_ < Duration::zero())
      throw UserError(
          "the grammar takes longer and longer for each token of the answer, expected one that "
          "reads a text in one way; write it without rules that begin or end with themselves "
          "twice, such as s ::= s s");
  }

  /// Calls f, and spends the time that it takes.
  template <typename F>
  auto timed(const F& f) {
    const Duration began = thread_time();
    const auto result = f();
    spend(thread_time() - began);
    return result;
  }

 private:
  /// What the thread has computed: on a busy machine less than has gone by.
  static Duration thread_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
  }

  static constexpr Duration kMost = std::chrono::seconds(2);
  static constexpr Duration kOfToken = std::chrono::milliseconds(20);
  static constexpr Duration kShort = std::chrono::milliseconds(5);

  Duration left_ = kMost;
  int64_t longest_ = 0;  // tokens
};

}  // namespace medusa
