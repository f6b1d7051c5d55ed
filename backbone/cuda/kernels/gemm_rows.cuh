// The rows of a GEMM from one of them on: a block of many rows, or a launch of some, takes its own.
#pragma once

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/launch.cuh"

namespace medusa {
namespace {

/// The same without the first n rows.
__host__ __device__ inline void skip_rows(SkinnyGemmArgs& args, int64_t n) {
  args.num_rows -= n;
  args.x.x += n * args.weight.num_inputs;
  if (args.x.squares != nullptr) args.x.squares += n * args.x.num_squares;
  if (args.behind.weight != nullptr) {
    args.behind.scaled += n * args.weight.num_outputs;
    args.behind.squares += n * args.behind.num_squares;
  }
  if (args.y != nullptr) args.y += n * args.weight.num_outputs;
  if (args.out != nullptr) args.out += n * (args.weight.num_outputs / 2);
  if (args.end != GemmEnd::RopeAndCache) return;
  RopeAndCacheArgs& place = args.place;
  DeviceRows& rows = place.rows;
  rows.tokens += n;
  rows.slots += n;
  rows.starts += n;
  rows.positions += n;
  rows.cache_rows += n;
  rows.paths += n;
  rows.count -= static_cast<int32_t>(n);
  place.query += n * place.num_heads * place.cache.head_size;
}

}  // namespace
}  // namespace medusa
