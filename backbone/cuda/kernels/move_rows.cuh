// Accepted rows of the cache move together.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

constexpr int kMoveThreads = 128;

/// Each thread moves eight columns of a layer (y) and a sequence (z) from the first row to the
/// last: what it overwrites it has read before, and nobody else reads it.
__global__ void __launch_bounds__(kMoveThreads) move_rows_columns(MoveRowsArgs args) {
  begin_kernel();
  const DeviceCache& cache = args.cache;
  const int64_t units = cache.head_size / 8;
  const int64_t unit = int64_t{blockIdx.x} * kMoveThreads + threadIdx.x;
  if (unit >= cache.num_kv_heads * units) return;
  const int64_t b = blockIdx.z;
  const int64_t first = cache_place(cache, blockIdx.y, args.slots[b], unit / units, args.starts[b]);
  const int64_t column = first + unit % units * 8;

  const int32_t* path = args.paths + b * args.max_path;
  for (int32_t j = 0; j < args.counts[b]; ++j) {
    if (path[j] == j) continue;  // lies in place
    const int64_t from = column + path[j] * cache.head_size, to = column + j * cache.head_size;
    const uint4 key = load_word4(cache.keys + from), value = load_word4(cache.values + from);
    *reinterpret_cast<uint4*>(cache.keys + to) = key;
    *reinterpret_cast<uint4*>(cache.values + to) = value;
  }
}

void move_rows(const MoveRowsArgs& args, DeviceStream stream) {
  if (args.num_sequences == 0) return;
  const int64_t units = args.cache.num_kv_heads * args.cache.head_size / 8;
  const dim3 blocks(static_cast<unsigned>((units + kMoveThreads - 1) / kMoveThreads),
                    static_cast<unsigned>(args.cache.num_layers),
                    static_cast<unsigned>(args.num_sequences));
  launch(move_rows_columns, blocks, kMoveThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
