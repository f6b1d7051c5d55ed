// What kernels of layers share: eight neighboring elements of a row, read and written 16 bytes at a
// time, sums over a warp, and places in the cache.
#pragma once

#include "backbone/cuda/launch.cuh"

namespace medusa {
namespace {

/// Eight neighboring elements of a row.
struct Eight {
  float x[8];
};

/// The two bfloat16 elements of a word.
__device__ inline float low_bf16(uint32_t word) { return float_of_bits(word << 16); }
__device__ inline float high_bf16(uint32_t word) { return float_of_bits(word & 0xFFFF0000U); }

/// @param from  a multiple of 16 bytes, as for all here.
__device__ inline uint4 load_word4(const Bf16* from) {
  return *reinterpret_cast<const uint4*>(from);
}
__device__ inline Eight upcast(uint4 w) {
  return {{low_bf16(w.x), high_bf16(w.x), low_bf16(w.y), high_bf16(w.y), low_bf16(w.z),
           high_bf16(w.z), low_bf16(w.w), high_bf16(w.w)}};
}

__device__ inline Eight load_eight(const Bf16* from) { return upcast(load_word4(from)); }
__device__ inline Eight load_eight(const float* from) {
  const float4 a = reinterpret_cast<const float4*>(from)[0];
  const float4 b = reinterpret_cast<const float4*>(from)[1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

__device__ inline void store_eight(float* to, const Eight& v) {
  reinterpret_cast<float4*>(to)[0] = make_float4(v.x[0], v.x[1], v.x[2], v.x[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(v.x[4], v.x[5], v.x[6], v.x[7]);
}
/// Rounded.
__device__ inline void store_eight(Bf16* to, const Eight& v) {
  *reinterpret_cast<uint4*>(to) = make_uint4(pack_bf16(v.x[0], v.x[1]), pack_bf16(v.x[2], v.x[3]),
                                             pack_bf16(v.x[4], v.x[5]), pack_bf16(v.x[6], v.x[7]));
}

__device__ inline float silu(float x) { return x / (1.0F + expf(-x)); }

/// The sum over the lanes of a warp; every lane gets it. Always in the same order: neighbors
/// first.
__device__ inline float warp_sum(float x) {
  for (int mask = 1; mask < kWarp; mask *= 2) x += shuffle_xor(x, mask);
  return x;
}

/// The maximum, in the same way.
__device__ inline int32_t warp_max(int32_t x) {
  for (int mask = 1; mask < kWarp; mask *= 2) {
    const int32_t other = shuffle_xor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}

/// Elements before row `row` of a head's keys, and of its values.
__device__ inline int64_t cache_place(const DeviceCache& cache, int64_t layer, int64_t slot,
                                      int64_t kv_head, int64_t row) {
  const int64_t head = (layer * cache.num_slots + slot) * cache.num_kv_heads + kv_head;
  return (head * cache.capacity + row) * cache.head_size;
}

}  // namespace
}  // namespace medusa
