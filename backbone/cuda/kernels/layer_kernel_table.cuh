// All kernels of a layer, for layer_kernels.cu and for tests, which run them emulated.
#pragma once

#include "backbone/cuda/kernels/embed.cuh"
#include "backbone/cuda/kernels/move_rows.cuh"
#include "backbone/cuda/kernels/norm.cuh"
#include "backbone/cuda/kernels/rope_and_cache.cuh"
#include "backbone/cuda/kernels/silu_mul.cuh"
#include "backbone/cuda/kernels/tree_attention.cuh"

namespace medusa {
namespace {

constexpr LayerKernels layer_kernel_table(const char* name) {
  return {.name = name,
          .supports = attention_supports,
          .tile_rows = attention_tile_rows,
          .attention_scratch = attention_scratch,
          .embed = embed,
          .norm = norm,
          .rope_and_cache = rope_and_cache,
          .attend = attend,
          .silu_mul = silu_mul,
          .move_rows = move_rows};
}

}  // namespace
}  // namespace medusa
