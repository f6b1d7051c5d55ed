// A chunk of attention: 64 positions that all rows of a tile read from the same cache rows, staged
// in shared memory.
#pragma once

#include "backbone/cuda/kernels/attention_unit.cuh"

namespace medusa {
namespace {

/// The keys and values of a chunk in shared memory. Rows are as long as lets the lanes that read
/// together read from different banks.
template <int kD>
struct StagedChunk {
  static constexpr int kUnits = kD / 8;  // of 16 bytes
  static constexpr int kKeyStride = kUnits % 8 == 4 ? kUnits : kUnits + 4;
  static constexpr int kValueStride = kUnits + 1;

  alignas(16) uint4 keys[kChunk * kKeyStride];
  alignas(16) uint2 values[kChunk * kValueStride * 2];

  /// All threads of the block begin to copy. @param key_row  the chunk's first, of a head of the
  /// cache.
  __device__ void fetch(const Bf16* key_row, const Bf16* value_row) {
    for (int i = static_cast<int>(threadIdx.x); i < kChunk * kUnits;
         i += static_cast<int>(blockDim.x)) {
      const int row = i / kUnits, unit = i % kUnits;
      copy_async16(&keys[row * kKeyStride + unit], key_row + i * 8);
      copy_async16(&values[(row * kValueStride + unit) * 2], value_row + i * 8);
    }
  }
};

/// The kUnit rows from one on, as UnitQueries reads them.
template <int kD>
struct StagedRows {
  const StagedChunk<kD>& chunk;
  int first;

  __device__ uint4 key(int n, int b) const {
    const int g = static_cast<int>(threadIdx.x % kWarp) / 4, t = static_cast<int>(threadIdx.x % 4);
    return chunk.keys[(first + 8 * n + g) * StagedChunk<kD>::kKeyStride + 4 * b + t];
  }
  __device__ void turn_to_values() {}
  __device__ uint2 value(int p, int b) const {
    const int g = static_cast<int>(threadIdx.x % kWarp) / 4, t = static_cast<int>(threadIdx.x % 4);
    const int row = first + 2 * t + p % 2 + p / 2 * 8;
    return chunk.values[row * StagedChunk<kD>::kValueStride * 2 + 8 * b + g];
  }
};

/// The chunks [begin, end) that any row of the tile sees; every warp finds them by itself.
struct ChunkRange {
  int32_t begin = 0, end = 0;
};
__device__ inline ChunkRange seen_chunks(const TreeAttentionArgs& args, DeviceTile tile) {
  int32_t unseen = INT32_MAX, tail = 0;
  for (int32_t i = static_cast<int32_t>(threadIdx.x % kWarp); i < tile.count; i += kWarp) {
    const Reach reach = reach_of(args.rows.positions[tile.first + i], args.window);
    unseen = reach.first < unseen ? reach.first : unseen;
    tail = reach.tail > tail ? reach.tail : tail;
  }
  return {-warp_max(-unseen) / kChunk, (warp_max(tail) + kChunk - 1) / kChunk};
}

}  // namespace
}  // namespace medusa
