#include "tests/cuda/emulated_cuda.h"
// after CUDA's words
#include "heads/cuda/head_kernel_table.cuh"
#include "tests/cuda/every_device.h"

namespace medusa {

const HeadKernels* emulated_head_kernels() {
  static const HeadKernels table = head_kernel_table("emulated CUDA");
  return &table;
}

}  // namespace medusa
