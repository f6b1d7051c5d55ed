// What host code and device kernels say to each other: plain numbers and pointers, no CUDA header.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>

struct CUstream_st;  // cudaStream_t's own type

namespace medusa {

/// A CUDA stream; null: the default one, and the only one of emulated kernels.
using DeviceStream = CUstream_st*;

/// A bfloat16 number as its bits.
struct Bf16 {
  uint16_t bits = 0;
};

/// A half precision number as its bits.
struct Half16 {
  uint16_t bits = 0;
};

/// The rows (tokens) of one pass. Pointers are to device memory, [count] each.
///
/// A row at position P of its sequence sees P + 1 cache rows of its slot: rows [0, start), then
/// those of the set bits of `path`, ascending, bit i standing for row start + i. The last of them
/// is its own. So the number of set bits is P + 1 - start. The row of a chain may also count all
/// rows before its own as committed (start = P, path = 1): it sees the same.
struct DeviceRows {
  const int32_t* tokens = nullptr;
  const int32_t* slots = nullptr;       // of the cache
  const int32_t* starts = nullptr;      // committed rows of the slot
  const int32_t* positions = nullptr;   // P, for the rotary embedding
  const int32_t* cache_rows = nullptr;  // where the row's own key and value lie
  const uint64_t* paths = nullptr;
  int32_t count = 0;  // R; known to the host, fixed in a captured graph
};

/// Keys and values of all slots: [L, S, G, capacity, D] each (KvLayout::Rows).
struct DeviceCache {
  Bf16* keys = nullptr;
  Bf16* values = nullptr;
  int64_t num_layers = 0;    // L
  int64_t num_slots = 0;     // S
  int64_t num_kv_heads = 0;  // G
  int64_t capacity = 0;      // rows of a slot
  int64_t head_size = 0;     // D

  auto operator<=>(const DeviceCache&) const = default;
};

/// Bias, head norm and rotary embedding; queries to `query`, keys and values to the cache.
struct RopeAndCacheArgs {
  DeviceRows rows;
  const float* qkv = nullptr;         // [R, (A + 2G) D] queries, keys, values; null where a GEMM
                                      // ends so (GemmEnd::RopeAndCache)
  const float* bias = nullptr;        // [(A + 2G) D]; null: none
  const float* query_norm = nullptr;  // [D] RMSNorm over each head before RoPE; null: none
  const float* key_norm = nullptr;    // [D]; null: none
  float epsilon = 0;
  const float* cos = nullptr;  // [positions, D / 2]; null: this layer has no RoPE
  const float* sin = nullptr;  // dimension i is rotated with i + D / 2 (backbone/rope.h)
  int64_t num_heads = 0;       // A
  DeviceCache cache;
  int64_t layer = 0;
  Bf16* query = nullptr;  // [R, A, D] written
};

/// How many kernels of ours this process has started. Recorded ones count when they are recorded,
/// not when their graph is replayed. Any thread.
inline std::atomic<int64_t> num_started_kernels{0};

}  // namespace medusa
