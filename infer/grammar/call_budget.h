// The time that grammars may take.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace medusa {

/// What the long calls of all grammars may take together, as all sequences wait for each of them:
/// a second at once, and half of the time that goes by.
///
/// Thread safety: all members.
class CallTime {
 public:
  using Duration = std::chrono::nanoseconds;

  void spend(Duration time) {
    const std::lock_guard lock(mutex_);
    refill();
    left_ = std::max<Duration>(left_ - time, -kMost);
  }

  bool is_spent() {
    const std::lock_guard lock(mutex_);
    refill();
    return left_ < Duration::zero();
  }

 private:
  void refill() {
    const auto now = std::chrono::steady_clock::now();
    left_ = std::min<Duration>(left_ + (now - last_) / 2, kMost);
    last_ = now;
  }

  static constexpr Duration kMost = std::chrono::seconds(1);

  std::mutex mutex_;
  Duration left_ = kMost;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Ends texts whose grammar reads them in so many ways that each token takes longer than the one
/// before: all sequences wait for it. All texts of one grammar share what it may take, so that
/// asking for several answers, or again, takes no more; and a grammar that has begun to take long
/// ends, too, when all of them together have taken too long. Time of the calling thread's own is
/// counted, and that of short calls is not. A call is not cut short, so callers keep them short.
///
/// Thread safety: all members.
class CallBudget {
 public:
  using Duration = std::chrono::nanoseconds;

  /// @param all  the time of all grammars.
  explicit CallBudget(std::shared_ptr<CallTime> all) : all_(std::move(all)) {}

  /// A text has one more token, drafted ones included.
  void add_token() {
    const std::lock_guard lock(mutex_);
    left_ = std::min<Duration>(left_ + kOfToken, kMost);
  }

  /// @throws UserError  too much time has gone, now or before.
  void spend(Duration time) {
    const std::lock_guard lock(mutex_);
    if (time >= kShort) {
      left_ -= time;
      all_->spend(time);
    }
    const bool takes_long = left_ < kMost - kOfToken;
    is_spent_ = is_spent_ || left_ < Duration::zero() || (takes_long && all_->is_spent());
    if (is_spent_)
      throw UserError(
          "the grammar takes longer and longer for each token of the answer, expected one that "
          "reads a text in one way; write it without rules that begin or end with themselves "
          "twice, such as s ::= s s");
  }

  /// Calls f, and spends the time that it takes.
  template <typename F>
  auto timed(const F& f) {
    Duration unspent{};
    return timed_part(f, unspent);
  }

  /// The same for a part of a call: short parts count together.
  /// @param unspent  what earlier parts took and was not spent yet.
  template <typename F>
  auto timed_part(const F& f, Duration& unspent) {
    spend(Duration::zero());
    const Duration began = thread_time();
    const auto result = f();
    unspent += thread_time() - began;
    if (unspent >= kShort) spend(std::exchange(unspent, Duration::zero()));
    return result;
  }

 private:
  /// What the thread has computed: on a busy machine less than has gone by.
  static Duration thread_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
  }

  static constexpr Duration kMost = std::chrono::seconds(1);
  static constexpr Duration kOfToken = std::chrono::milliseconds(20);
  static constexpr Duration kShort = std::chrono::milliseconds(5);

  std::shared_ptr<CallTime> all_;
  std::mutex mutex_;
  Duration left_ = kMost;
  bool is_spent_ = false;
};

}  // namespace medusa
