// What stands between two passes, as the GPU runs it, on a CPU.
#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/emulated_kernels.h"

// After the emulated words, which it is written in.
#include "infer/cuda/step_kernel_table.cuh"

namespace medusa {

const StepKernels* emulated_step_kernels() {
  static constexpr StepKernels kTable = step_kernel_table("emulated CUDA");
  return &kTable;
}

}  // namespace medusa
