#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace medusa {

double learning_rate(const OptimizerConfig& config, int64_t step, int64_t total_steps) {
  // A short run warms up over half of its steps at most.
  const int64_t warmup = std::min(config.warmup_steps, total_steps / 2);
  if (step < warmup)
    return config.learning_rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double done =
      static_cast<double>(step - warmup) / static_cast<double>(total_steps - warmup);
  switch (config.schedule) {
    case RateSchedule::Cosine:
      return config.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
    case RateSchedule::Linear:
      return config.learning_rate * (1 - done);
    case RateSchedule::Constant:
      break;
  }
  return config.learning_rate;
}

double ramp_factor(Ramp ramp, int64_t step, int64_t total_steps) {
  const double done = static_cast<double>(step) / static_cast<double>(total_steps);
  switch (ramp) {
    case Ramp::Sine:
      return std::sin(std::numbers::pi / 2 * done);
    case Ramp::Linear:
      return done;
    case Ramp::Constant:
      break;
  }
  return 1;
}

}  // namespace medusa
