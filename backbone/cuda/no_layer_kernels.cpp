// Stands for layer_kernels.cu in builds without a CUDA compiler.
#include "backbone/cuda/layer_kernels.h"

namespace medusa {

const LayerKernels* cuda_layer_kernels() { return nullptr; }

}  // namespace medusa
