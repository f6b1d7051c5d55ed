// Where a head of queries, keys or values goes, and how it is turned: for the kernel that does so
// and for the GEMM that ends so.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"

namespace medusa {
namespace {

/// What is done to a head, and where it goes.
struct PlacedHead {
  const float* bias = nullptr;  // [D], as the others; may be null, as norm, cos and sin
  const float* norm = nullptr;
  const float *cos = nullptr, *sin = nullptr;  // [D / 2]
  Bf16* to = nullptr;
};

/// @param head  of the queries, then of the keys, then of the values.
__device__ inline PlacedHead placed_head(const RopeAndCacheArgs& args, int64_t row, int64_t head) {
  const DeviceCache& cache = args.cache;
  const int64_t size = cache.head_size, groups = cache.num_kv_heads;
  const bool is_query = head < args.num_heads, is_value = head >= args.num_heads + groups;

  PlacedHead out;
  if (args.bias != nullptr) out.bias = args.bias + head * size;
  if (!is_value) {
    out.norm = is_query ? args.query_norm : args.key_norm;
    if (args.cos != nullptr) {
      const int64_t position = args.rows.positions[row];
      out.cos = args.cos + position * (size / 2);
      out.sin = args.sin + position * (size / 2);
    }
  }
  if (is_query) {
    out.to = args.query + (row * args.num_heads + head) * size;
  } else {
    const int64_t kv_head = (head - args.num_heads) % groups;
    out.to =
        (is_value ? cache.values : cache.keys) +
        cache_place(cache, args.layer, args.rows.slots[row], kv_head, args.rows.cache_rows[row]);
  }
  return out;
}

/// Elements i and i + 1 of a head, with its bias.
__device__ inline float2 with_bias(const PlacedHead& head, int64_t i, float2 x) {
  if (head.bias != nullptr) {
    x.x += head.bias[i];
    x.y += head.bias[i + 1];
  }
  return x;
}

/// Turns elements i and i + 1 of a head's first half with those of its second half, and writes all.
__device__ inline void place_pairs(const PlacedHead& head, int64_t i, int64_t half, float2 a,
                                   float2 b) {
  if (head.cos != nullptr) {
    const float2 cos = make_float2(head.cos[i], head.cos[i + 1]);
    const float2 sin = make_float2(head.sin[i], head.sin[i + 1]);
    const float2 x = a;
    a = make_float2(fmaf(x.x, cos.x, -(b.x * sin.x)), fmaf(x.y, cos.y, -(b.y * sin.y)));
    b = make_float2(fmaf(b.x, cos.x, x.x * sin.x), fmaf(b.y, cos.y, x.y * sin.y));
  }
  *reinterpret_cast<uint32_t*>(head.to + i) = pack_bf16(a.x, a.y);
  *reinterpret_cast<uint32_t*>(head.to + i + half) = pack_bf16(b.x, b.y);
}

}  // namespace
}  // namespace medusa
