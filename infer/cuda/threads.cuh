// A thread for each of many numbers.
#pragma once

#include "backbone/cuda/launch.cuh"

namespace medusa {
namespace {

constexpr int kManyThreads = 256;

__device__ inline int64_t thread_of_grid() {
  return static_cast<int64_t>(blockIdx.x) * kManyThreads + threadIdx.x;
}

inline unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + kManyThreads - 1) / kManyThreads);
}

}  // namespace
}  // namespace medusa
