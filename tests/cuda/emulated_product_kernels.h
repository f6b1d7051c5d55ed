// Our CUDA products on emulated words; tensors of theirs are on the CPU.
#pragma once

#include "backbone/cuda/product_kernels.h"

namespace medusa {

const ProductKernels* emulated_product_kernels();

}  // namespace medusa
