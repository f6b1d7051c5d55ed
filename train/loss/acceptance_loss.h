// A loss that asks for acceptance instead of likeness: rejection sampling accepts a draft with
// probability alpha = sum of min(p, q) over tokens (Leviathan et al., arXiv:2211.17192 §3), one
// minus the total variation between target p and draft q. The loss is -log alpha, as LK losses have
// it (arXiv:2602.23881): near the target its gradient is that of the total variation, far from it,
// where that one vanishes, cross-entropy's. No LibTorch.
#pragma once

#include <cstdint>
#include <span>

#include "train/loss/cross_entropy.h"

namespace medusa {

/// Arguments and results as cross_entropy() of cross_entropy.h; with one certain token it is the
/// same.
RowLoss acceptance_loss(std::span<float> logits, const RowTarget& target, float scale);
RowLoss acceptance_loss(std::span<uint16_t> logits, const RowTarget& target, float scale);

}  // namespace medusa
