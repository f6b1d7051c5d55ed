// Where weights begin that must not begin at zero.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/random.h"

namespace medusa {

/// Uniform in ±1/sqrt(columns), each number addressed by its place.
/// @param block  tells weights of one seed apart.
/// @returns      [rows, columns] float32 on the CPU.
at::Tensor small_random(int64_t rows, int64_t columns, const Random& random, int64_t block);

}  // namespace medusa
