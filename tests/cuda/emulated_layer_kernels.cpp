// The kernels of a layer, as the GPU runs them, on a CPU.
#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/emulated_kernels.h"

// After the emulated words, which it is written in.
#include "backbone/cuda/kernels/layer_kernel_table.cuh"

namespace medusa {

const LayerKernels* emulated_layer_kernels() {
  static constexpr LayerKernels kTable = layer_kernel_table("emulated CUDA");
  return &kTable;
}

}  // namespace medusa
