// What each part of a decoding step must do at least: bytes to move, numbers to multiply.
#pragma once

#include <array>
#include <cstdint>

#include "backbone/model_config.h"
#include "backbone/stage_timer.h"

namespace medusa {

/// Weights and cache rows are read once whatever the number of rows, logits written once. What goes
/// from part to part stays in the processor's caches and is not counted.
struct StageWork {
  double bytes = 0;
  double flops = 0;  // a multiplication and an addition are two; GEMMs and attention only
};

/// @param weight_bytes   of the weights that each part reads, all layers together.
/// @param element_bytes  of a number in the embedding and the cache.
/// @param rows           N of the pass, a chain behind the context.
/// @param context        committed rows.
/// @returns              by ForwardStage.
std::array<StageWork, kNumForwardStages> pass_work(
    const ModelConfig& config, const std::array<int64_t, kNumForwardStages>& weight_bytes,
    double element_bytes, int64_t rows, int64_t context);

}  // namespace medusa
