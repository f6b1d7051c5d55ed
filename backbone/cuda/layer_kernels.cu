#include "backbone/cuda/kernels/layer_kernel_table.cuh"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {

const LayerKernels* cuda_layer_kernels() {
  static constexpr LayerKernels kTable = layer_kernel_table("CUDA");
  return &kTable;
}

}  // namespace medusa
