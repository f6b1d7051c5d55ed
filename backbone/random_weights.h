// A model of any size that nobody has trained: what speed is measured with where no file is at
// hand.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "backbone/weights.h"

namespace medusa {

/// Weights of this shape, made on the device, one layer after the other: never more memory than the
/// weights' own and some 200 MB. Evenly distributed, as wide as keeps states in size from layer to
/// layer, so that all numbers stay finite in bfloat16; norms near one. The numbers depend on seed
/// and config alone: every device gets the same.
/// @param dtype  of all but norms and biases, which are float32.
Weights random_weights(const ModelConfig& config, at::ScalarType dtype, at::Device device,
                       uint64_t seed);

}  // namespace medusa
