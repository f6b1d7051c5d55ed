// The rows of a pass over trees: where they stand before it, and which of them stay.
#pragma once

#include "backbone/cuda/launch.cuh"
#include "infer/cuda/step_kernels.h"

namespace medusa {
namespace {

constexpr int kManyThreads = 256;  // of a block; a thread for each of many elements

__device__ inline int64_t thread_of_grid() {
  return static_cast<int64_t>(blockIdx.x) * kManyThreads + threadIdx.x;
}

inline unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + kManyThreads - 1) / kManyThreads);
}

/// Says where the rows of a pass over all trees stand: plan_forward() for trees of one shape.
__global__ void __launch_bounds__(kManyThreads) place_rows_kernel(const PlaceRowsArgs args) {
  begin_kernel();
  const int64_t row = thread_of_grid();
  if (row >= int64_t{args.num_sequences} * args.tree.num_nodes) return;
  const int64_t sequence = row / args.tree.num_nodes, node = row % args.tree.num_nodes;
  const int32_t start = args.lengths[sequence];
  args.row_slots[row] = args.slots[sequence];
  args.starts[row] = start;
  args.positions[row] = start + args.tree.depths[node];
  args.cache_rows[row] = start + static_cast<int32_t>(node);
  args.paths[row] = args.tree.paths[node];
}

void place_rows(const PlaceRowsArgs& args, DeviceStream stream) {
  const int64_t rows = int64_t{args.num_sequences} * args.tree.num_nodes;
  launch(place_rows_kernel, dim3(blocks_for(rows)), kManyThreads, 0, stream, args);
}

/// Commits the rows that stay, and keeps the last of each sequence, which the heads read next.
__global__ void __launch_bounds__(kManyThreads) advance_kernel(const AdvanceArgs args) {
  begin_kernel();
  const auto sequence = static_cast<int64_t>(blockIdx.y);
  const int32_t count = args.counts[sequence];
  const int64_t last = sequence * args.num_nodes + args.paths[sequence * args.max_path + count - 1];
  const int64_t i = thread_of_grid();
  if (i < args.hidden_size)
    args.states[sequence * args.hidden_size + i] = args.hidden[last * args.hidden_size + i];
  if (i == 0) args.lengths[sequence] += count;
  if (i == 0 && sequence == 0) ++*args.turn;
}

void advance(const AdvanceArgs& args, DeviceStream stream) {
  dim3 blocks(blocks_for(args.hidden_size), static_cast<unsigned>(args.num_sequences));
  launch(advance_kernel, blocks, kManyThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
