// The k best of each row of logits. Each thread owns numbers of the row and knows the best of them.
// A block takes the best of its threads' k times, and the owner's warp looks for the owner's next
// one; then the best of the blocks' lists are taken.
#pragma once

#include "infer/cuda/logit_rows.cuh"
#include "infer/cuda/step_kernels.h"

namespace medusa {
namespace {

constexpr int kMostTopK = 16;
constexpr size_t kTopKBytes = kPartsBytes + kMostTopK * sizeof(BestLogit);  // shared memory

/// The best of an owner's numbers after `taken`, known to all lanes of the warp that looks.
template <typename Threads>
__device__ BestLogit next_of_owner(const float* row, int64_t size, const BestLogit& taken) {
  BestLogit best = no_logit();
  const int64_t lane = thread_index() % kWarp;
  for (int64_t i = taken.index % Threads::kAll + lane * Threads::kAll; i < size;
       i += int64_t{kWarp} * Threads::kAll) {
    const BestLogit each{row[i], static_cast<int32_t>(i)};
    if (is_better(taken, each)) best = better_of(best, each);
  }
  return reduce_warp(best, better_of);
}

/// The k best of this block's numbers, best first; no_logit() where there are fewer.
/// @param list  [k] written, in shared memory.
template <typename Threads>
__device__ void list_of_block(const float* row, int64_t size, int k, BestLogit* list) {
  BestLogit mine = no_logit();
  for_each_own<Threads>(row, size, [&](float logit, int64_t i) {
    mine = better_of(mine, {logit, static_cast<int32_t>(i)});
  });
  for (int rank = 0; rank < k; ++rank) {
    const BestLogit taken = Threads::reduce_own_block(mine, no_logit(), better_of);
    if (thread_index() == 0) list[rank] = taken;
    if (taken.index == kNoIndex) continue;
    const int owner = taken.index % Threads::kAll % Threads::kOfBlock;
    if (owner / kWarp != thread_index() / kWarp) continue;
    const BestLogit next = next_of_owner<Threads>(row, size, taken);
    if (thread_index() == owner) mine = next;
  }
}

/// @tparam kBlocks  of a row.
template <int kBlocks>
__global__ void __launch_bounds__(RowThreads<kBlocks>::kOfBlock, 1)
    top_k_kernel(const TopKArgs args) {
  using Threads = RowThreads<kBlocks>;
  begin_kernel();
  const float* row = args.logits + Threads::row() * args.row_size;
  int32_t* tokens = args.tokens + Threads::row() * args.k;
  auto* list = reinterpret_cast<BestLogit*>(shared_memory<unsigned char>() + kPartsBytes);
  list_of_block<Threads>(row, args.row_size, args.k, list);
  Threads::sync();
  if (Threads::index() < kWarp) {  // a lane to each block's list
    const int lane = thread_index();
    const auto entry = [&](int place) {
      if (lane >= kBlocks || place >= args.k) return no_logit();
      if constexpr (kBlocks == 1)
        return list[place];
      else
        return *shared_of_rank(list + place, lane);
    };
    int place = 0;
    BestLogit first = entry(0);
    for (int rank = 0; rank < args.k; ++rank) {
      const BestLogit taken = reduce_warp(first, better_of);
      if (lane == 0)
        tokens[rank] = args.token_of_row != nullptr ? args.token_of_row[taken.index] : taken.index;
      if (first.index == taken.index) first = entry(++place);
    }
  }
  Threads::sync();  // lists are read until here
}

void top_k(const TopKArgs& args, DeviceStream stream) {
  launch_rows(top_k_kernel<kRowBlocks>, top_k_kernel<1>, args.num_rows, kTopKBytes, stream, args);
}

}  // namespace
}  // namespace medusa
