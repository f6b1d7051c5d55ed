// The heads' guesses become the next tree.
#pragma once

#include "infer/cuda/step_kernels.h"
#include "infer/cuda/threads.cuh"

namespace medusa {
namespace {

__global__ void __launch_bounds__(kManyThreads) fill_tree_kernel(const FillTreeArgs args) {
  const int64_t row = thread_of_grid();
  if (row >= int64_t{args.num_sequences} * args.tree.num_nodes) return;
  const int64_t sequence = row / args.tree.num_nodes, node = row % args.tree.num_nodes;
  if (node == 0) {
    args.tokens[row] = args.roots[sequence];
    return;
  }
  const int64_t head = sequence * args.num_heads + args.tree.heads[node];
  args.tokens[row] = args.guesses[head * args.top_k + args.tree.ranks[node]];
}

void fill_tree(const FillTreeArgs& args, DeviceStream stream) {
  const int64_t rows = int64_t{args.num_sequences} * args.tree.num_nodes;
  launch(fill_tree_kernel, dim3(blocks_for(rows)), kManyThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
