// Which code computes.
#pragma once

namespace medusa {

enum class Kernels {
  Auto,   // the fastest that this machine and dtype have
  Plain,  // LibTorch's ops and plain loops: the slow twin that everything is tested against
};

/// Which of our CPU kernels (backbone/cpu/), where Kernels::Auto takes them.
enum class CpuIsa {
  Auto,        // the fastest that this machine has
  Amx,         // tiles of bfloat16 numbers; AVX-512 beside them
  Avx512Bf16,  // dot products of bfloat16 numbers; AVX-512 beside them
  Avx512,      // multiply-adds; AVX512-VNNI for weights in blocks, as for the two above
  Avx2,        // with fused multiply-add
  Plain,       // C++ for any processor
};

}  // namespace medusa
