// Step -> learning rate.
#pragma once

#include <cstdint>

#include "train/train_config.h"

namespace medusa {

/// Rises linearly over warmup_steps, then falls as half a cosine to 0 after the last step.
/// @param step  from 0, below total_steps.
double learning_rate(const TrainConfig& config, int64_t step, int64_t total_steps);

}  // namespace medusa
