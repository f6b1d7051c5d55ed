// Step -> learning rate.
#pragma once

#include <cstdint>

namespace medusa {

struct LearningRate {
  double peak = 0;
  int64_t warmup_steps = 0;
};

/// Rises linearly over warmup_steps, then falls as half a cosine to 0 after the last step.
/// @param step  from 0, below total_steps.
double learning_rate(const LearningRate& config, int64_t step, int64_t total_steps);

}  // namespace medusa
