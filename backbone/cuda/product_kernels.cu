#include "backbone/cuda/kernels/product_kernel_table.cuh"
#include "backbone/cuda/product_kernels.h"

namespace medusa {

const ProductKernels* cuda_product_kernels() {
  static constexpr ProductKernels kTable = product_kernel_table("CUDA");
  return &kTable;
}

}  // namespace medusa
