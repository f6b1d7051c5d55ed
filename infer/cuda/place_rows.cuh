// Where the rows of a pass over all trees stand: plan_forward() for trees of one shape.
#pragma once

#include "infer/cuda/step_kernels.h"
#include "infer/cuda/threads.cuh"

namespace medusa {
namespace {

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

}  // namespace
}  // namespace medusa
