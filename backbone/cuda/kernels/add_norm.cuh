// The residual sum and the RMSNorm behind it.
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

/// One block for a row. Each thread reads again what it wrote itself.
__global__ void __launch_bounds__(kNormThreads) add_norm_rows(AddNormArgs args) {
  begin_kernel();
  const int64_t begin = int64_t{blockIdx.x} * args.hidden_size;
  const int64_t first = int64_t{threadIdx.x} * 8, step = int64_t{kNormThreads} * 8;
  float squares = 0;
  for (int64_t i = first; i < args.hidden_size; i += step) {
    Eight x = load_eight(args.x + begin + i);
    if (args.y != nullptr) {
      const Eight y = load_eight(args.y + begin + i);
      for (int e = 0; e < 8; ++e) x.x[e] += y.x[e];
      store_eight(args.x + begin + i, x);
    }
    for (int e = 0; e < 8; ++e) squares = fmaf(x.x[e], x.x[e], squares);
  }
  const float mean = norm_block_sum(squares) / static_cast<float>(args.hidden_size);
  const float inverse = 1.0F / sqrtf(mean + args.epsilon);
  for (int64_t i = first; i < args.hidden_size; i += step) {
    Eight x = load_eight(args.x + begin + i);
    const Eight weight = load_eight(args.weight + i);
    for (int e = 0; e < 8; ++e) x.x[e] = x.x[e] * inverse * weight.x[e];
    store_eight(args.out + begin + i, x);
  }
}

void add_norm(const AddNormArgs& args, DeviceStream stream) {
  if (args.num_rows == 0) return;
  launch(add_norm_rows, dim3(static_cast<unsigned>(args.num_rows)), kNormThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
