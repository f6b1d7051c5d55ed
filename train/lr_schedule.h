// Step -> learning rate, and -> the weight of the heads' loss.
#pragma once

#include <cstdint>

#include "train/joint/joint_config.h"
#include "train/optimizer_config.h"

namespace medusa {

/// The learning rate rises linearly over warmup_steps, then falls as the schedule says.
/// @param step  from 0, below total_steps.
double learning_rate(const OptimizerConfig& config, int64_t step, int64_t total_steps);

/// s(step) of arXiv:2401.10774 §2.2.2: from 0 towards 1 over the whole run, as a quarter of a sine
/// or a straight line, or 1 throughout.
double ramp_factor(Ramp ramp, int64_t step, int64_t total_steps);

}  // namespace medusa
