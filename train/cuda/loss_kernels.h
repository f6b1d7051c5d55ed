// The kernel of the training loss on a GPU: rows of logits become gradients in place. One table, as
// backbone/cuda/layer_kernels.h, and under the same rules.
#pragma once

#include "backbone/cuda/device_types.h"

namespace medusa {

/// What train/loss/row_loss.h computes, a block to a row. Pointers are to device memory.
struct RowLossArgs {
  Bf16* halves = nullptr;   // [n, V_t] logits; on return gradients, rounded, if scale is not 0
  float* floats = nullptr;  // the same in float32; one of the two is given
  int64_t num_rows = 0;     // n
  int64_t row_size = 0;     // V_t
  const int32_t* labels = nullptr;       // [n] whose rank is asked for; negative: none
  const uint8_t* has_loss = nullptr;     // [n] 0: the row's gradient, loss and rank are none
  const int32_t* target_rows = nullptr;  // [n, m] where the wanted probability lies, each once
  const float* target_probs = nullptr;   // [n, m] how much; null: all of it, m is 1
  int32_t num_targets = 1;               // m, at most kMaxTargets
  bool acceptance = false;               // acceptance_loss() instead of cross_entropy()
  float scale = 0;
  float* losses = nullptr;   // [n] written, nats
  int32_t* ranks = nullptr;  // [n] written; without a label the largest number
};

struct LossKernels {
  const char* name;
  void (*row_loss)(const RowLossArgs& args, DeviceStream stream);
};

/// Gives the kernels of this build; null where it was made without a CUDA compiler.
const LossKernels* cuda_loss_kernels();

}  // namespace medusa
