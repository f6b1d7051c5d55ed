// Loss and gradient of rows of logits on a GPU, where they lie.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "train/cuda/loss_kernels.h"
#include "train/loss/row_loss.h"
#include "train/samples/batch.h"

namespace medusa {

/// Turns logits into gradients as cross_entropy() and acceptance_loss() do, row by row. Waits until
/// it is done.
/// @param logits  [n, V_t] bfloat16 or float32, contiguous, on the kernels' device.
/// @param labels  of the n rows.
/// @returns       [n]; of rows without a loss 0 and no rank.
std::vector<RowLoss> device_row_losses(const at::Tensor& logits, const Labels& labels, double scale,
                                       const LossKernels& kernels);

}  // namespace medusa
