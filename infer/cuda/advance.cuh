// The rows that stay are committed, and the last of each sequence is what the heads read next.
#pragma once

#include "infer/cuda/step_kernels.h"
#include "infer/cuda/threads.cuh"

namespace medusa {
namespace {

__global__ void __launch_bounds__(kManyThreads) advance_kernel(const AdvanceArgs args) {
  begin_kernel();
  const auto sequence = static_cast<int64_t>(blockIdx.y);
  const int32_t count = args.counts[sequence];
  const int64_t last = sequence * args.num_nodes + args.paths[sequence * args.max_path + count - 1];
  const int64_t i = thread_of_grid();
  if (i < args.hidden_size)
    args.states[sequence * args.hidden_size + i] = args.hidden[last * args.hidden_size + i];
  if (i == 0) args.lengths[sequence] += count;
}

void advance(const AdvanceArgs& args, DeviceStream stream) {
  dim3 blocks(blocks_for(args.hidden_size), static_cast<unsigned>(args.num_sequences));
  launch(advance_kernel, blocks, kManyThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
