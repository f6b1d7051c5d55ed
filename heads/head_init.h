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

// Where a low-rank output begins: two factors whose product is near the LM head's rows.

/// Logits are (x downᵀ) outᵀ: r (V_t + H) numbers instead of V_t H, in memory and in each product.
struct OutputFactors {
  at::Tensor down;  // [r, H] float32, orthonormal rows
  at::Tensor out;   // [V_t, r] float32
};

/// The best factors in the sum of squares, of the rows without what all of them have in common:
/// adding one row to all adds one number to all logits of a place, which softmax does not see.
/// @param rows  [V_t, H] the LM head's, in any dtype, on any device; the factors are on it too.
/// @param rank  r, at most H.
OutputFactors factorize_output(const at::Tensor& rows, int64_t rank);

}  // namespace medusa
