// Waiting for something that has to be asked for again and again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace medusa {

/// Most answers come at once: so it is asked without a pause at first, and then now and again.
class Waiting {
 public:
  using Clock = std::chrono::steady_clock;

  /// @param seconds  until it is over.
  explicit Waiting(double seconds) : end_(began_ + milliseconds_of(seconds)) {}

  static std::chrono::milliseconds milliseconds_of(double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
  }

  bool is_over() const { return Clock::now() > end_; }

  /// What is left of it, at least a millisecond. Rounded up: who has waited so long finds it over.
  std::chrono::milliseconds left() const {
    using std::chrono::milliseconds;
    return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(end_ - Clock::now()));
  }

  /// Between two questions.
  void pause() const {
    if (Clock::now() - began_ < std::chrono::milliseconds(2))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  Clock::time_point began_ = Clock::now(), end_;
};

}  // namespace medusa
