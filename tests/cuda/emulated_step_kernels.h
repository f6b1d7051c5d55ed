// Our CUDA kernels between two passes on emulated words; tensors of theirs are on the CPU.
#pragma once

#include "infer/cuda/step_kernels.h"

namespace medusa {

const StepKernels* emulated_step_kernels();

}  // namespace medusa
