// The time that grammars may take.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace medusa {

/// What a grammar may take for each token of an answer.
inline constexpr std::chrono::milliseconds kGrammarTimeOfToken{75};

/// What the long calls of all grammars may take together, as all sequences wait for each of them:
/// half a second at once, an eighth of the time that goes by, and what each token may.
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

  /// A text has one more token, for which long calls were made.
  void add_token() {
    const std::lock_guard lock(mutex_);
    left_ = std::min<Duration>(left_ + kGrammarTimeOfToken, kMost);
  }

  bool is_spent() {
    const std::lock_guard lock(mutex_);
    refill();
    return left_ < Duration::zero();
  }

 private:
  void refill() {
    const auto now = std::chrono::steady_clock::now();
    left_ = std::min<Duration>(left_ + (now - last_) / 8, kMost);
    last_ = now;
  }

  static constexpr Duration kMost = std::chrono::milliseconds(500);

  std::mutex mutex_;
  Duration left_ = kMost;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Ends texts whose grammar reads them in so many ways that a token takes long: all sequences wait
/// for it. All texts of one grammar share what it may take, so that asking for several answers, or
/// again, takes no more; and while all grammars together take too long, those end that take long
/// themselves. Time of the computing thread's own is counted, and that of short calls is not.
///
/// Thread safety: all members.
class CallBudget {
 public:
  using Duration = std::chrono::nanoseconds;

  /// What a single call may take.
  static constexpr Duration kOfCall = std::chrono::milliseconds(500);

  /// @param all  the time of all grammars.
  explicit CallBudget(std::shared_ptr<CallTime> all) : all_(std::move(all)) {}

  /// A text has one more token, drafted ones included.
  void add_token() {
    const std::lock_guard lock(mutex_);
    left_ = std::min<Duration>(left_ + kGrammarTimeOfToken, kMost);
    if (std::exchange(took_long_, false)) all_->add_token();
  }

  /// @throws UserError  too much time has gone, now or before.
  void spend(Duration time) {
    const std::lock_guard lock(mutex_);
    if (time >= kShort) {
      left_ -= time;
      took_long_ = true;
      all_->spend(time);
    }
    is_spent_ = is_spent_ || left_ < Duration::zero();
    if (is_spent_)
      throw UserError(
          "the grammar takes too long for each token of the answer, expected one that reads a text "
          "in one way; write it without rules that begin or end with themselves twice, such as "
          "s ::= s s, and without repeated groups whose parts may be missing: [a-z ]+ for "
          "([a-z]+ ?)+");
    if (left_ < kMost - kMayTake && all_->is_spent())  // for which others may be to blame
      throw UserError(
          "the grammar takes long for each token of the answer, and all requests' grammars "
          "together take too long now, expected less; try again later, or write one that reads a "
          "text in one way, such as [a-z ]+ for ([a-z]+ ?)+");
  }

  /// A call took longer than any may, or is still computing.
  /// @throws UserError  always.
  [[noreturn]] void end() {
    spend(2 * kMost);
    throw std::logic_error("a spent budget");
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
  static constexpr Duration kMayTake = std::chrono::milliseconds(20);  // while all take too long
  static constexpr Duration kShort = std::chrono::milliseconds(5);

  std::shared_ptr<CallTime> all_;
  std::mutex mutex_;
  Duration left_ = kMost;
  bool is_spent_ = false, took_long_ = false;  // since the last token
};

}  // namespace medusa
