// Our CUDA kernels on emulated words: of a layer, of products, and between two passes. Tensors of
// theirs are on the CPU.
#pragma once

#include "backbone/cuda/layer_kernels.h"
#include "backbone/cuda/product_kernels.h"
#include "infer/cuda/step_kernels.h"

namespace medusa {

const LayerKernels* emulated_layer_kernels();

const ProductKernels* emulated_product_kernels();

const StepKernels* emulated_step_kernels();

}  // namespace medusa
