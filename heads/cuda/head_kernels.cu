#include "heads/cuda/head_kernel_table.cuh"
#include "heads/cuda/head_kernels.h"

namespace medusa {

const HeadKernels* cuda_head_kernels() {
  static const HeadKernels table = head_kernel_table("CUDA");
  return &table;
}

}  // namespace medusa
