// Our CUDA kernels of a layer on emulated words; tensors of theirs are on the CPU.
#pragma once

#include "backbone/cuda/layer_kernels.h"

namespace medusa {

const LayerKernels* emulated_layer_kernels();

}  // namespace medusa
