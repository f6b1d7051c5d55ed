// The activation between the two GEMMs of the feed-forward part.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

constexpr int kSiluThreads = 128;

/// One block for 8 kSiluThreads numbers (x) of a row (y).
__global__ void __launch_bounds__(kSiluThreads) silu_mul_rows(SiluMulArgs args) {
  begin_kernel();
  const int64_t row = blockIdx.y;
  const int64_t at = (int64_t{blockIdx.x} * kSiluThreads + threadIdx.x) * 8;
  if (at >= args.mlp_size) return;
  const float* from = args.gate_up + row * 2 * args.mlp_size + at;
  const Eight gate = load_eight(from), up = load_eight(from + args.mlp_size);
  Eight out;
  for (int e = 0; e < 8; ++e) out.x[e] = silu(gate.x[e]) * up.x[e];
  store_eight(args.out + row * args.mlp_size + at, out);
}

void silu_mul(const SiluMulArgs& args, DeviceStream stream) {
  if (args.num_rows == 0) return;
  const int64_t blocks = (args.mlp_size / 8 + kSiluThreads - 1) / kSiluThreads;
  launch(silu_mul_rows, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(args.num_rows)),
         kSiluThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
