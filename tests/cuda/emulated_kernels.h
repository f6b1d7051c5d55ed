// Our CUDA kernels on emulated words: of a layer, of GEMMs, and between two passes. Tensors of
// theirs are on the CPU.
#pragma once

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/layer_kernels.h"
#include "infer/cuda/step_kernels.h"

namespace medusa {

const LayerKernels* emulated_layer_kernels();

const GemmKernels* emulated_gemm_kernels();
/// Whether the emulated GPU has clusters; it does unless set otherwise.
void set_emulated_clusters(bool has);

const StepKernels* emulated_step_kernels();

}  // namespace medusa
