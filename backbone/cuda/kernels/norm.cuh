// RMSNorm of the residual stream.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

constexpr int kNormThreads = 512;

/// The sum of x over the block; every thread gets it. Once in a kernel.
__device__ inline float norm_block_sum(float x) {
  constexpr int kWarps = kNormThreads / kWarp;
  __shared__ float sums[kWarps];
  x = warp_sum(x);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = x;
  sync_block();
  float total = 0;
  for (int warp = 0; warp < kWarps; ++warp) total += sums[warp];
  return total;
}

/// One block for a row. Each thread keeps its first eight elements, and reads its others again.
__global__ void __launch_bounds__(kNormThreads) norm_rows(NormArgs args) {
  let_next_kernel_begin();
  const float* x = args.x + int64_t{blockIdx.x} * args.hidden_size;
  Bf16* out = args.out + int64_t{blockIdx.x} * args.hidden_size;
  const int64_t first = int64_t{threadIdx.x} * 8, step = int64_t{kNormThreads} * 8;
  Eight kept = {}, weight = {};
  if (first < args.hidden_size) weight = load_eight(args.weight + first);
  wait_for_previous_kernel();
  if (first < args.hidden_size) kept = load_eight(x + first);
  float squares = 0;
  for (int64_t i = first; i < args.hidden_size; i += step) {
    const Eight each = i == first ? kept : load_eight(x + i);
    for (int e = 0; e < 8; ++e) squares = fmaf(each.x[e], each.x[e], squares);
  }
  const float sum = norm_block_sum(squares);
  float inverse = 1;
  if (args.squares == nullptr)
    inverse = 1.0F / sqrtf(sum / static_cast<float>(args.hidden_size) + args.epsilon);
  else if (static_cast<int64_t>(threadIdx.x) < args.num_squares)
    args.squares[blockIdx.x * args.num_squares + threadIdx.x] = threadIdx.x == 0 ? sum : 0;
  for (int64_t i = first; i < args.hidden_size; i += step) {
    Eight each = i == first ? kept : load_eight(x + i);
    if (i != first) weight = load_eight(args.weight + i);
    for (int e = 0; e < 8; ++e) each.x[e] = each.x[e] * inverse * weight.x[e];
    store_eight(out + i, each);
  }
}

void norm(const NormArgs& args, DeviceStream stream) {
  if (args.num_rows == 0) return;
  launch(norm_rows, dim3(static_cast<unsigned>(args.num_rows)), kNormThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
