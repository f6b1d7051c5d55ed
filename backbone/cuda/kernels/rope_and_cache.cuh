// What happens to queries, keys and values between their GEMM and attention.
#pragma once

#include "backbone/cuda/kernels/placed_head.cuh"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

constexpr int kPlaceWarps = 4;
constexpr int kPlaceThreads = kPlaceWarps * kWarp;

__device__ inline float2 load_pair(const PlacedHead& head, const float* from, int64_t i) {
  return with_bias(head, i, *reinterpret_cast<const float2*>(from + i));
}

__device__ inline float head_inverse(const PlacedHead& head, const float* from, int64_t size,
                                     int64_t first, float epsilon) {
  float squares = 0;
  for (int64_t i = first; i < size; i += 2 * kWarp) {
    const float2 x = load_pair(head, from, i);
    squares = fmaf(x.y, x.y, fmaf(x.x, x.x, squares));
  }
  return 1.0F / sqrtf(warp_sum(squares) / static_cast<float>(size) + epsilon);
}

/// A warp for each head (x) of a row (y); lanes have two neighbors of either half.
__global__ void __launch_bounds__(kPlaceThreads) place_heads_rows(RopeAndCacheArgs args) {
  begin_kernel();
  const int64_t head_index = int64_t{blockIdx.x} * kPlaceWarps + threadIdx.x / kWarp;
  const int64_t all = args.num_heads + 2 * args.cache.num_kv_heads, row = blockIdx.y;
  if (head_index >= all) return;
  const int64_t size = args.cache.head_size, half = size / 2;
  const PlacedHead head = placed_head(args, row, head_index);
  const float* from = args.qkv + (row * all + head_index) * size;
  const int64_t first = int64_t{threadIdx.x % kWarp} * 2;

  const bool normed = head.norm != nullptr;
  const float inverse = normed ? head_inverse(head, from, size, first, args.epsilon) : 1.0F;
  const auto scaled = [&](int64_t i) {
    float2 x = load_pair(head, from, i);
    if (normed) {
      x.x = x.x * inverse * head.norm[i];
      x.y = x.y * inverse * head.norm[i + 1];
    }
    return x;
  };
  for (int64_t i = first; i < half; i += 2 * kWarp)
    place_pairs(head, i, half, scaled(i), scaled(i + half));
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
