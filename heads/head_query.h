// What the heads are run for: which of them, and what they read at each position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "base/token.h"

namespace medusa {

/// Heads [first_head, first_head + num_heads) at M positions. Roots and the tokens behind them may
/// lie side by side (stride 1: positions of a text) or path by path.
struct HeadQuery {
  at::Tensor hidden;  // [M, H] states at the tokens before the roots, in the backbone's dtype; or
                      // [1, H]: all positions have the same state and root
  std::span<const TokenId> tokens;  // position m's root is tokens[m * stride], then what follows it
  int64_t stride = 1;
  int64_t num_positions = 0;  // M
  int64_t first_head = 0;
  int64_t num_heads = 0;  // K', run

  /// Token i of position m; 0 is the root.
  TokenId token(int64_t m, int64_t i) const { return tokens[static_cast<size_t>(m * stride + i)]; }
  int64_t last_head() const { return first_head + num_heads - 1; }
};

}  // namespace medusa
