// The products of few rows, as the GPU runs them, on a CPU.
#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/emulated_kernels.h"

// After the emulated words, which it is written in.
#include "backbone/cuda/kernels/product_kernel_table.cuh"

namespace medusa {

const ProductKernels* emulated_product_kernels() {
  static constexpr ProductKernels kTable = product_kernel_table("emulated CUDA");
  return &kTable;
}

}  // namespace medusa
