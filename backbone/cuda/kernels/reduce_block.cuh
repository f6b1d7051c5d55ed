// A row of numbers shared by the threads of a block, which put their parts together in an order
// that depends on nothing: first the lanes of each warp by halves, then the warps alike.
#pragma once

#include "backbone/cuda/launch.cuh"

namespace medusa {
namespace {

constexpr int kRowThreads = kWarp * kWarp;  // as many warps as lanes

__device__ inline int thread_index() { return static_cast<int>(threadIdx.x); }

/// @param combine  of two parts, the same for either order: then every lane has the same result.
template <typename Part, typename Combine>
__device__ Part reduce_warp(Part mine, Combine combine) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) mine = combine(mine, of_lane(mine, mask));
  return mine;
}

template <typename Part, typename Combine>
__device__ Part reduce_block(Part mine, Combine combine) {
  __shared__ Part of_warps[kWarp];
  mine = reduce_warp(mine, combine);
  if (thread_index() % kWarp == 0) of_warps[thread_index() / kWarp] = mine;
  sync_block();
  const Part all = reduce_warp(of_warps[thread_index() % kWarp], combine);
  sync_block();  // before of_warps is written again
  return all;
}

}  // namespace
}  // namespace medusa
