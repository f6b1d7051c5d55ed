// Who reads a row of logits: a cluster of blocks, so that a row has more than one processor; a
// block where the GPU has no clusters.
#pragma once

#include "backbone/cuda/kernels/reduce_block.cuh"

namespace medusa {
namespace {

constexpr int kRowBlocks = 8;  // of a cluster; more may not be had everywhere

/// The threads of a row. Each takes numbers index(), index() + kAll, …
/// @tparam kBlocks  kRowBlocks, or 1.
template <int kBlocks>
struct RowThreads {
  static constexpr int kOfBlock = kBlocks == 1 ? kRowThreads : kRowThreads / 4;
  static constexpr int kAll = kBlocks * kOfBlock;
  static constexpr int kWarps = kOfBlock / kWarp;  // of a block

  __device__ static int64_t row() { return static_cast<int64_t>(blockIdx.x) / kBlocks; }
  /// Of this block among the row's.
  __device__ static int rank() { return static_cast<int>(blockIdx.x) % kBlocks; }
  __device__ static int index() { return rank() * kOfBlock + thread_index(); }

  __device__ static void sync() {
    if constexpr (kBlocks == 1)
      sync_block();
    else
      sync_cluster();
  }

  /// As reduce_block(), of all of them: the warps' parts in the order of their numbers.
  template <typename Part, typename Combine>
  __device__ static Part reduce(Part mine, Combine combine) {
    Part* of_warps = shared_memory<Part>();
    const int lane = thread_index() % kWarp;
    mine = reduce_warp(mine, combine);
    if (lane == 0) of_warps[thread_index() / kWarp] = mine;
    sync();
    const auto part = [&](int warp) {
      if constexpr (kBlocks == 1)
        return of_warps[warp];
      else
        return *shared_of_rank(of_warps + warp % kWarps, warp / kWarps);
    };
    Part all = part(lane);
    for (int warp = lane + kWarp; warp < kBlocks * kWarps; warp += kWarp)
      all = combine(all, part(warp));
    all = reduce_warp(all, combine);
    sync();  // before of_warps is written again, or this block ends
    return all;
  }

  /// The same of this block's alone.
  /// @param none  changes nothing that it is combined with.
  template <typename Part, typename Combine>
  __device__ static Part reduce_own_block(Part mine, const Part& none, Combine combine) {
    Part* of_warps = shared_memory<Part>();
    const int lane = thread_index() % kWarp;
    mine = reduce_warp(mine, combine);
    if (lane == 0) of_warps[thread_index() / kWarp] = mine;
    sync_block();
    const Part all = reduce_warp(lane < kWarps ? of_warps[lane] : none, combine);
    sync_block();
    return all;
  }
};

/// Calls body(number, its place) for each of this thread's numbers of a row, in order.
template <typename Threads, typename Body>
__device__ void for_each_own(const float* row, int64_t size, const Body& body) {
  constexpr int kInFlight = 8;  // reads that do not wait for each other
  for (int64_t i = Threads::index(); i < size; i += kInFlight * Threads::kAll) {
    float numbers[kInFlight];
    for (int j = 0; j < kInFlight; ++j)
      if (const int64_t at = i + j * Threads::kAll; at < size) numbers[j] = row[at];
    for (int j = 0; j < kInFlight; ++j)
      if (const int64_t at = i + j * Threads::kAll; at < size) body(numbers[j], at);
  }
}

constexpr size_t kPartsBytes = 16 * kWarp;  // of shared memory, for a block's parts

/// Starts a kernel for each row.
/// @param many, one      with RowThreads<kRowBlocks>, and RowThreads<1>.
/// @param shared_bytes   at least kPartsBytes.
template <typename Args>
void launch_rows(void (*many)(Args), void (*one)(Args), int64_t num_rows, size_t shared_bytes,
                 DeviceStream stream, const Args& args) {
  if (has_clusters())
    launch_clusters(many, kRowBlocks, dim3(static_cast<unsigned>(num_rows * kRowBlocks)),
                    RowThreads<kRowBlocks>::kOfBlock, shared_bytes, stream, args);
  else
    launch(one, dim3(static_cast<unsigned>(num_rows)), RowThreads<1>::kOfBlock, shared_bytes,
           stream, args);
}

}  // namespace
}  // namespace medusa
