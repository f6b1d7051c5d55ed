// What happens to queries, keys and values between their GEMM and attention.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

constexpr int kPlaceWarps = 4;
constexpr int kPlaceThreads = kPlaceWarps * kWarp;

/// The head of a warp: where it comes from, what is done to it, where it goes.
struct PlacedHead {
  const float* from;  // [D], as the others
  const float* bias;  // may be null, as norm, cos and sin
  const float* norm;
  const float *cos, *sin;  // [D / 2]
  Bf16* to;
};

__device__ inline PlacedHead placed_head(const RopeAndCacheArgs& args, int64_t row, int64_t head) {
  const DeviceCache& cache = args.cache;
  const int64_t size = cache.head_size, groups = cache.num_kv_heads;
  const int64_t all = args.num_heads + 2 * groups;
  const bool is_query = head < args.num_heads, is_value = head >= args.num_heads + groups;

  PlacedHead out{args.qkv + (row * all + head) * size, nullptr, nullptr, nullptr, nullptr, nullptr};
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
__device__ inline float2 load_pair(const PlacedHead& head, int64_t i) {
  float2 x = *reinterpret_cast<const float2*>(head.from + i);
  if (head.bias != nullptr) {
    x.x += head.bias[i];
    x.y += head.bias[i + 1];
  }
  return x;
}

__device__ inline float head_inverse(const PlacedHead& head, int64_t size, int64_t first,
                                     float epsilon) {
  float squares = 0;
  for (int64_t i = first; i < size; i += 2 * kWarp) {
    const float2 x = load_pair(head, i);
    squares = fmaf(x.y, x.y, fmaf(x.x, x.x, squares));
  }
  return 1.0F / sqrtf(warp_sum(squares) / static_cast<float>(size) + epsilon);
}

/// A warp for each head (x) of a row (y); lanes have two neighbors of either half.
__global__ void __launch_bounds__(kPlaceThreads) place_heads_rows(RopeAndCacheArgs args) {
  begin_kernel();
  const int64_t head_index = int64_t{blockIdx.x} * kPlaceWarps + threadIdx.x / kWarp;
  if (head_index >= args.num_heads + 2 * args.cache.num_kv_heads) return;
  const PlacedHead head = placed_head(args, blockIdx.y, head_index);
  const int64_t size = args.cache.head_size, half = size / 2;
  const int64_t first = int64_t{threadIdx.x % kWarp} * 2;

  const bool normed = head.norm != nullptr;
  const float inverse = normed ? head_inverse(head, size, first, args.epsilon) : 1.0F;
  const auto scaled = [&](int64_t i) {
    float2 x = load_pair(head, i);
    if (normed) {
      x.x = x.x * inverse * head.norm[i];
      x.y = x.y * inverse * head.norm[i + 1];
    }
    return x;
  };
  for (int64_t i = first; i < half; i += 2 * kWarp) {
    float2 a = scaled(i), b = scaled(i + half);
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
}

void rope_and_cache(const RopeAndCacheArgs& args, DeviceStream stream) {
  if (args.rows.count == 0) return;
  const int64_t heads = args.num_heads + 2 * args.cache.num_kv_heads;
  const auto blocks = static_cast<unsigned>((heads + kPlaceWarps - 1) / kPlaceWarps);
  launch(place_heads_rows, dim3(blocks, static_cast<unsigned>(args.rows.count)), kPlaceThreads, 0,
         stream, args);
}

}  // namespace
}  // namespace medusa
