// Our CUDA kernels on emulated words: of a layer, of GEMMs, between two passes, of the loss.
// Tensors of theirs are on the CPU.
#pragma once

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/layer_kernels.h"
#include "infer/cuda/step_kernels.h"
#include "train/cuda/loss_kernels.h"

namespace medusa {

const LayerKernels* emulated_layer_kernels();

const GemmKernels* emulated_gemm_kernels();
/// Whether the emulated GPU has clusters; it does unless set otherwise.
void set_emulated_clusters(bool has);

const StepKernels* emulated_step_kernels();

const LossKernels* emulated_loss_kernels();

}  // namespace medusa
