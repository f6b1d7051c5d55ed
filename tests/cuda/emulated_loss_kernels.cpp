// The training loss, as the GPU runs it, on a CPU.
#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/emulated_kernels.h"

// After the emulated words, which it is written in.
#include "train/cuda/loss_kernel_table.cuh"

namespace medusa {

const LossKernels* emulated_loss_kernels() {
  static constexpr LossKernels kTable = loss_kernel_table("emulated CUDA");
  return &kTable;
}

}  // namespace medusa
