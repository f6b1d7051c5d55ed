// Stands for product_kernels.cu in builds without a CUDA compiler.
#include "backbone/cuda/product_kernels.h"

namespace medusa {

const ProductKernels* cuda_product_kernels() { return nullptr; }

}  // namespace medusa
