// Skinny GEMMs, as the GPU runs them, on a CPU.
#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/emulated_kernels.h"

// After the emulated words, which it is written in.
#include "backbone/cuda/kernels/gemm_kernel_table.cuh"

namespace medusa {

const GemmKernels* emulated_gemm_kernels() {
  static constexpr GemmKernels kTable = gemm_kernel_table("emulated CUDA");
  return &kTable;
}

}  // namespace medusa
