#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/kernels/gemm_kernel_table.cuh"

namespace medusa {

const GemmKernels* cuda_gemm_kernels() {
  static constexpr GemmKernels kTable = gemm_kernel_table("CUDA");
  return &kTable;
}

}  // namespace medusa
