// Stands for head_kernels.cu in builds without a CUDA compiler.
#include "heads/cuda/head_kernels.h"

namespace medusa {

const HeadKernels* cuda_head_kernels() { return nullptr; }

}  // namespace medusa
