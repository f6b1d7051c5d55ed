// Which positions a row of attention sees, how they are cut, and what the blocks of one tile leave
// for the last of them, which joins it.
//
// The last 64 to 79 positions of a row are its tail; what is before them lies in chunks of 64. A
// path has at most 64 nodes, so all that may be scattered over the cache is in the tail, and the
// position of a chunk's row is its cache row: in a tree as in plain decoding, which therefore read
// the same numbers in the same order.
#pragma once

#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

constexpr int32_t kUnit = 16;  // positions that a warp takes in at once
constexpr int32_t kQuarters = 4;
constexpr int32_t kChunk = kQuarters * kUnit;
constexpr int32_t kSplitChunks = 2;  // that one block goes through
constexpr int32_t kSplit = kChunk * kSplitChunks;

/// Positions [first, end) are seen: [first, tail) in chunks where first < tail, the rest by itself.
/// A tail begins at a multiple of kUnit.
struct Reach {
  int32_t first = 0, tail = 0, end = 0;
};

constexpr int32_t tail_begin(int64_t position) {
  return position < kChunk ? 0 : static_cast<int32_t>((position + 1 - kChunk) / kUnit * kUnit);
}

/// @param window  0: all positions are seen.
__device__ inline Reach reach_of(int32_t position, int64_t window) {
  const bool hides = window > 0 && window <= position;
  return {hides ? static_cast<int32_t>(position + 1 - window) : 0, tail_begin(position),
          position + 1};
}

/// Splits of chunks that a row may need: a number of the grid's size alone. The tail's partial sums
/// stand behind theirs.
constexpr int64_t num_splits(int64_t max_context) {
  return (tail_begin(max_context) + kSplit - 1) / kSplit;
}

/// Floats of one row, head and split: D sums, the largest score, the sum of weights; and two unused
/// ones, so that all begin at 16 bytes. Scores are in base 2.
constexpr int64_t partial_size(int64_t head_size) { return head_size + 4; }

/// [splits + 1, R, A, D + 4]
__device__ inline float* partial_of(const TreeAttentionArgs& args, int64_t split, int64_t row,
                                    int64_t head) {
  const int64_t before = (split * args.rows.count + row) * args.num_heads + head;
  return args.scratch + before * partial_size(args.cache.head_size);
}

/// Elements before the first row of a row's slot in a head's keys, and in its values: cache_place()
/// in fewer registers, for a head size that is known.
template <int kD>
__device__ inline int64_t slot_place(const TreeAttentionArgs& args, int32_t row, int32_t group) {
  const DeviceCache& cache = args.cache;
  const int32_t slot = static_cast<int32_t>(args.layer) * static_cast<int32_t>(cache.num_slots) +
                       args.rows.slots[row];
  const int32_t head = slot * static_cast<int32_t>(cache.num_kv_heads) + group;
  return int64_t{head} * static_cast<int32_t>(cache.capacity) * kD;
}

/// Multiplies a dot product of query and key, so that exp2 is what exp was.
__device__ inline float score_scale(int head_size) {
  constexpr float kLog2E = 1.44269504F;
  return kLog2E / sqrtf(static_cast<float>(head_size));
}

}  // namespace
}  // namespace medusa
