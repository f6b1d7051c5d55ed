// The k best of each row of logits, a block to a row. Each thread owns every kRowThreads-th number
// and knows the best of them; the best of all is taken k times, and its owner's warp looks for the
// owner's next one.
#pragma once

#include "infer/cuda/logit_rows.cuh"
#include "infer/cuda/step_kernels.h"

namespace medusa {
namespace {

/// The best of an owner's numbers after `taken`, known to all lanes of the warp that looks.
__device__ inline BestLogit next_of_owner(const float* row, int64_t size, const BestLogit& taken) {
  BestLogit best = no_logit();
  const int64_t lane = thread_index() % kWarp;
  for (int64_t i = taken.index % kRowThreads + lane * kRowThreads; i < size;
       i += int64_t{kWarp} * kRowThreads) {
    const BestLogit each{row[i], static_cast<int32_t>(i)};
    if (is_better(taken, each)) best = better_of(best, each);
  }
  return reduce_warp(best, better_of);
}

__global__ void __launch_bounds__(kRowThreads, 1) top_k_kernel(const TopKArgs args) {
  begin_kernel();
  const float* row = args.logits + static_cast<int64_t>(blockIdx.x) * args.row_size;
  int32_t* tokens = args.tokens + static_cast<int64_t>(blockIdx.x) * args.k;
  BestLogit mine = no_logit();
  for (int64_t i = thread_index(); i < args.row_size; i += kRowThreads)
    mine = better_of(mine, {row[i], static_cast<int32_t>(i)});
  for (int rank = 0; rank < args.k; ++rank) {
    const BestLogit taken = reduce_block(mine, better_of);
    if (thread_index() == 0)
      tokens[rank] = args.token_of_row != nullptr ? args.token_of_row[taken.index] : taken.index;
    const int owner = taken.index % kRowThreads;
    if (owner / kWarp != thread_index() / kWarp) continue;
    const BestLogit next = next_of_owner(row, args.row_size, taken);
    if (thread_index() == owner) mine = next;
  }
}

void top_k(const TopKArgs& args, DeviceStream stream) {
  launch(top_k_kernel, dim3(static_cast<unsigned>(args.num_rows)), kRowThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
