// What the blocks of a long text leave for the kernel that joins them.
#pragma once

#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

/// Floats of one row, head and split: D sums, the largest score, the sum of weights; and two unused
/// ones, so that all begin at 16 bytes. Scores are in base 2.
constexpr int64_t partial_size(int64_t head_size) { return head_size + 4; }

/// [splits, R, A, D + 4]
__device__ inline float* partial_of(const TreeAttentionArgs& args, int64_t split, int64_t row,
                                    int64_t head) {
  const int64_t before = (split * args.rows.count + row) * args.num_heads + head;
  return args.scratch + before * partial_size(args.cache.head_size);
}

/// Multiplies a dot product of query and key, so that exp2 is what exp was.
__device__ inline float score_scale(int head_size) {
  constexpr float kLog2E = 1.44269504F;
  return kLog2E / sqrtf(static_cast<float>(head_size));
}

}  // namespace
}  // namespace medusa
