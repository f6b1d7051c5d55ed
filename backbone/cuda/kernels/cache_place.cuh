// Where a row of keys or values lies in the cache.
#pragma once

#include "backbone/cuda/launch.h"

namespace medusa {
namespace {

/// Numbers before row `row` of a head's keys, and of its values.
__device__ inline int64_t cache_place(const DeviceCache& cache, int64_t layer, int64_t slot,
                                      int64_t kv_head, int64_t row) {
  const int64_t head = (layer * cache.num_slots + slot) * cache.num_kv_heads + kv_head;
  return (head * cache.capacity + row) * cache.head_size;
}

}  // namespace
}  // namespace medusa
