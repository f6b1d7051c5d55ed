#include "train/cuda/loss_kernel_table.cuh"
#include "train/cuda/loss_kernels.h"

namespace medusa {

const LossKernels* cuda_loss_kernels() {
  static constexpr LossKernels kTable = loss_kernel_table("CUDA");
  return &kTable;
}

}  // namespace medusa
