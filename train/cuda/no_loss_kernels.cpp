// Stands for loss_kernels.cu in builds without a CUDA compiler.
#include "train/cuda/loss_kernels.h"

namespace medusa {

const LossKernels* cuda_loss_kernels() { return nullptr; }

}  // namespace medusa
