// The largest of many logits and where it stands; of equals the first.
#pragma once

#include "infer/cuda/reduce_block.cuh"

namespace medusa {
namespace {

struct BestLogit {
  float value;
  int32_t index;
};

constexpr int32_t kNoIndex = 0x7FFFFFFF;

/// Worse than any logit.
__device__ inline BestLogit no_logit() { return {-INFINITY, kNoIndex}; }

__device__ inline bool is_better(const BestLogit& a, const BestLogit& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}
__device__ inline BestLogit better_of(const BestLogit& a, const BestLogit& b) {
  return is_better(a, b) ? a : b;
}
/// What the lane whose number differs in these bits holds.
__device__ inline BestLogit of_lane(const BestLogit& mine, int mask) {
  return {shuffle_xor(mine.value, mask), shuffle_xor(mine.index, mask)};
}

/// Of a row, known to all threads of the block.
__device__ inline BestLogit best_of_row(const float* row, int64_t size) {
  BestLogit best = no_logit();
  for (int64_t i = thread_index(); i < size; i += kRowThreads)
    best = better_of(best, {row[i], static_cast<int32_t>(i)});
  return reduce_block(best, better_of);
}

}  // namespace
}  // namespace medusa
