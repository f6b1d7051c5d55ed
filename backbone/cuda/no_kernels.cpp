// Stands for device_runtime.cu, layer_kernels.cu and gemm_kernels.cu in builds without a CUDA
// compiler.
#include "backbone/cuda/device_runtime.h"
#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/layer_kernels.h"

namespace medusa {

DeviceRuntime* cuda_runtime() { return nullptr; }

const LayerKernels* cuda_layer_kernels() { return nullptr; }

const GemmKernels* cuda_gemm_kernels() { return nullptr; }

}  // namespace medusa
