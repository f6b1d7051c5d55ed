// What each part of a decoding step must do at least: bytes to move, numbers to multiply.
#pragma once

#include <array>
#include <cstdint>

#include "backbone/model_config.h"
#include "backbone/part_clock.h"

namespace medusa {

/// Weights and cache rows are read once whatever the number of rows, logits written once. What goes
/// from part to part stays in the processor's caches and is not counted.
struct PartWork {
  double bytes = 0;
  double flops = 0;  // a multiplication and an addition are two; products and attention only
};

/// @param weight_bytes  of the weights that each part reads, all layers together.
/// @param number_bytes  of a number in the embedding and the cache.
/// @param rows          N of the pass, a chain behind the context.
/// @param context       committed rows.
/// @returns             by PassPart.
std::array<PartWork, kNumPassParts> pass_work(
    const ModelConfig& config, const std::array<int64_t, kNumPassParts>& weight_bytes,
    double number_bytes, int64_t rows, int64_t context);

}  // namespace medusa
