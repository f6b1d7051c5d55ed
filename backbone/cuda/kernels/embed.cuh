// Rows of the embedding matrix, upcast: where the residual stream begins.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {
namespace {

constexpr int kEmbedThreads = 128;

/// One block for 8 kEmbedThreads numbers (x) of a row (y).
__global__ void __launch_bounds__(kEmbedThreads) embed_rows(EmbedArgs args) {
  begin_kernel();
  const int64_t row = blockIdx.y;
  const int64_t at = (int64_t{blockIdx.x} * kEmbedThreads + threadIdx.x) * 8;
  if (at >= args.hidden_size) return;
  const int64_t token = args.rows.tokens[row];
  store_eight(args.x + row * args.hidden_size + at,
              load_eight(args.embedding + token * args.hidden_size + at));
}

void embed(const EmbedArgs& args, DeviceStream stream) {
  if (args.rows.count == 0) return;
  const int64_t blocks = (args.hidden_size / 8 + kEmbedThreads - 1) / kEmbedThreads;
  launch(embed_rows, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(args.rows.count)),
         kEmbedThreads, 0, stream, args);
}

}  // namespace
}  // namespace medusa
