#include "infer/cuda/step_kernel_table.cuh"
#include "infer/cuda/step_kernels.h"

namespace medusa {

const StepKernels* cuda_step_kernels() {
  static constexpr StepKernels kTable = step_kernel_table("CUDA");
  return &kTable;
}

}  // namespace medusa
