// The time that grammars may take, and the memory that goes with it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace medusa {

/// What a grammar may take for each token of an answer.
inline constexpr std::chrono::milliseconds kGrammarTimeOfToken{75};

/// What all grammars may take together, as all sequences wait for each of them: a quarter of a
/// second for each step of the decoder. Where nobody tells its steps, their long calls may take as
/// much, and then an eighth of the time that goes by.
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

  /// The decoder begins a step: what the one before took is over.
  void begin_step() {
    const std::lock_guard lock(mutex_);
    left_ = kMost;
    ++step_;
  }

  /// Counts the steps.
  int64_t step() {
    const std::lock_guard lock(mutex_);
    return step_;
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

  static constexpr Duration kMost = std::chrono::milliseconds(250);

  std::mutex mutex_;
  Duration left_ = kMost;
  int64_t step_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The library keeps all ways of reading a text as long as the text lives, some gigabytes
/// for each second in which it found them. So what bounds this time, of all texts that live, bounds
/// memory.
///
/// Thread safety: all members.
class LiveReadings {
 public:
  using Duration = std::chrono::nanoseconds;

  void add(Duration time) { total_ += time.count(); }
  /// Tokens were taken back, or a text ended.
  void remove(Duration time) { total_ -= time.count(); }
  bool are_too_many() const { return Duration(total_) > kMost; }
  /// Of those of one text: its grammar is to blame, and nobody else.
  static bool are_too_many_of_one(Duration time) { return time > kMost / 2; }

  /// What a token may take that is read in a few ways, which is not counted.
  static constexpr Duration kOfToken = std::chrono::microseconds(20);
  /// What a text may have while all of them have too much.
  static constexpr Duration kOfText = std::chrono::milliseconds(5);

 private:
  static constexpr Duration kMost = std::chrono::milliseconds(300);
  std::atomic<int64_t> total_ = 0;  // ns
};

/// Ends texts whose grammar reads them in so many ways that a token takes long: all sequences wait
/// for it. All texts of one grammar share what it may take, so that asking for several answers, or
/// again, takes no more; and while all grammars together take too long, those end that take long
/// themselves. Time of the computing thread's own is counted; of a grammar alone, only that of long
/// calls.
///
/// Thread safety: all members.
class CallBudget {
 public:
  using Duration = std::chrono::nanoseconds;

  /// What a single call may take.
  static constexpr Duration kOfCall = std::chrono::milliseconds(250);

  /// @param all  the time of all grammars.
  explicit CallBudget(std::shared_ptr<CallTime> all) : all_(std::move(all)) {}

  /// A text has one more token, drafted ones included.
  void add_token() {
    const std::lock_guard lock(mutex_);
    left_ = std::min<Duration>(left_ + kGrammarTimeOfToken, kMost);
  }

  /// @throws UserError  too much time has gone, now or before.
  void spend(Duration time) {
    const std::lock_guard lock(mutex_);
    const int64_t step = all_->step();  // 0: nobody tells them
    if (step != step_) {
      step_ = step;
      of_step_ = {};
    }
    of_step_ += time;
    if (time >= kShort || step > 0) all_->spend(time);
    if (time >= kShort) left_ -= time;
    is_spent_ = is_spent_ || left_ < Duration::zero();
    if (is_spent_)
      throw UserError(
          "the grammar takes too long for each token of the answer, expected one that reads a text "
          "in one way; write it without rules that begin or end with themselves twice, such as "
          "s ::= s s, and without repeated groups whose parts may be missing: [a-z ]+ for "
          "([a-z]+ ?)+");
    if (of_step_ > kMayTake && all_->is_spent())  // for which others may be to blame
      throw UserError(
          "the grammar takes long for each token of the answer, and all requests' grammars "
          "together take too long now, expected less; try again later, or write one that reads a "
          "text in one way, such as [a-z ]+ for ([a-z]+ ?)+");
  }

  /// The grammar is to blame whatever others do: none of its texts goes on.
  /// @param time  that its last call took and that was not spent.
  /// @throws UserError  always.
  [[noreturn]] void end(Duration time) {
    {
      const std::lock_guard lock(mutex_);
      is_spent_ = true;
    }
    spend(time);
    throw std::logic_error("a spent budget");
  }

  /// Calls f, and spends the time that it takes.
  template <typename F>
  auto timed(const F& f) {
    Duration unspent{};
    const auto result = timed_part(f, unspent);
    spend(unspent);
    return result;
  }

  /// The same for a part of a call: short parts count together, and the last ones are not spent.
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

  /// What the thread has computed: on a busy machine less than has gone by.
  static Duration thread_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
  }

 private:
  static constexpr Duration kMost = std::chrono::seconds(1);
  static constexpr Duration kMayTake = std::chrono::milliseconds(20);  // of a step in which all
                                                                       // take too long
  static constexpr Duration kShort = std::chrono::milliseconds(5);

  std::shared_ptr<CallTime> all_;
  std::mutex mutex_;
  Duration left_ = kMost;
  Duration of_step_{};  // what it has taken since that began
  int64_t step_ = 0;
  bool is_spent_ = false;
};

}  // namespace medusa
