// What holds a trained backbone to itself, L_0: the KL divergence from its own distribution before
// training, in chunks of positions (Medusa, arXiv:2401.10774 §2.2.2 and §2.4 self-distillation).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "train/loss/loss.h"

namespace medusa {

/// States and LM head of one model.
struct ModelOutput {
  at::Tensor states;  // [n, H] after the final norm
  at::Tensor output;  // [V, H] same dtype
};

/// Sums over positions.
struct Divergence {
  double kl = 0;          // KL(was ‖ is), nats
  int64_t positions = 0;  // n
  int64_t same = 0;       // positions whose most probable token is the same

  void add(const Divergence& other);
  double mean() const { return positions == 0 ? 0 : kl / static_cast<double>(positions); }
};

/// @param was       the teacher: constant.
/// @param states    [n, H] the student's, detached.
/// @param output    the student's LM head, and where its gradient goes.
/// @param scale     what one position weighs in the loss; 0: measure only.
/// @param chunk     positions whose logits exist at one time.
/// @param gradient  [n, H] like states; overwritten with scale * d KL / d states unless scale is 0,
///                  when it may be undefined.
Divergence divergence(const ModelOutput& was, const at::Tensor& states,
                      const HeadOutputWeight& output, double scale, int64_t chunk,
                      at::Tensor gradient);

}  // namespace medusa
