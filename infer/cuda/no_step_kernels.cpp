// Stands for step_kernels.cu in builds without a CUDA compiler.
#include "infer/cuda/step_kernels.h"

namespace medusa {

const StepKernels* cuda_step_kernels() { return nullptr; }

}  // namespace medusa
