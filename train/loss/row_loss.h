// Loss, rank of the label and gradient of one row of logits, in place, without any other memory of
// the row's size: cross-entropy, or how seldom a draft would be accepted. No LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace medusa {

constexpr size_t kMaxTargets = 64;  // of one row

/// What a row of logits should have said.
struct RowTarget {
  int32_t label = -1;             // whose rank is asked for; negative: none
  std::span<const int32_t> rows;  // where the wanted probability lies, each once; 1 to kMaxTargets
  std::span<const float> probs;   // how much, together 1
};

struct RowLoss {
  float loss = 0;    // nats
  int32_t rank = 0;  // logits above the label's; of equal ones the lower index stands above.
                     // Without a label the largest number
};

/// @param logits  on return scale * (softmax - target), the gradient of scale * loss, if scale is
///                not 0; unchanged otherwise. Finite numbers, at least one.
RowLoss cross_entropy(std::span<float> logits, const RowTarget& target, float scale);

/// The same on bfloat16 bits; computed in float32, the gradient rounded to the nearest.
RowLoss cross_entropy(std::span<uint16_t> logits, const RowTarget& target, float scale);

/// A loss that asks for acceptance instead of likeness: rejection sampling accepts a draft with
/// probability alpha = sum of min(p, q) over tokens (Leviathan et al., arXiv:2211.17192 §3), one
/// minus the total variation between target p and draft q. The loss is -log alpha, as LK losses
/// have it (arXiv:2602.23881): near the target its gradient is that of the total variation, far
/// from it, where that one vanishes, cross-entropy's. Arguments and results as cross_entropy();
/// with one certain token it is the same.
RowLoss acceptance_loss(std::span<float> logits, const RowTarget& target, float scale);
RowLoss acceptance_loss(std::span<uint16_t> logits, const RowTarget& target, float scale);

}  // namespace medusa
