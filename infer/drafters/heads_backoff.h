// Heads that are not run while their drafts do not pay.
#pragma once

#include <algorithm>
#include <cstdint>

namespace medusa {

/// Heads that pay run in every step, others now and then, so that it is seen when they pay
/// again: every kRunEvery-th step, and where running them is costly, as in a pass of many
/// sequences, so seldom that it costs kRunShare of the time.
class HeadsBackoff {
 public:
  static constexpr int32_t kRunEvery = 8;  // steps
  static constexpr double kRunShare = 0.005;

  /// Says whether to run the heads in this step.
  /// @param pay         they would gain more than running them costs.
  /// @param heads_cost  of running them, in steps of one row.
  bool should_run(bool pay, double heads_cost) {
    if (!pay && ++since_run_ < std::max<double>(kRunEvery, heads_cost / kRunShare)) return false;
    since_run_ = 0;
    return true;
  }

 private:
  int32_t since_run_ = 0;  // steps
};

/// A mean of numbers that forgets the old ones.
class FadingMean {
 public:
  /// @param fading  of a number's weight when the next one comes.
  explicit FadingMean(double fading = 0.8) : fading_(fading) {}
  int64_t count() const { return count_; }
  double mean() const { return weights_ > 0 ? sum_ / weights_ : 0; }
  void add(double number) {
    sum_ = fading_ * sum_ + number;
    weights_ = fading_ * weights_ + 1;
    ++count_;
  }

 private:
  double fading_;
  double sum_ = 0, weights_ = 0;
  int64_t count_ = 0;
};

}  // namespace medusa
