// Softmax, cross-entropy, rank of the label and gradient of one row of logits, in place, without
// any other memory of the row's size. No LibTorch.
#pragma once

#include <cstdint>
#include <span>

namespace medusa {

struct RowLoss {
  float loss = 0;    // nats
  int32_t rank = 0;  // logits above the label's; of equal ones the lower index stands above
};

/// @param logits  on return scale * (softmax - one at label), the gradient of scale * loss, if
///                scale is not 0; unchanged otherwise. Finite numbers, at least one.
RowLoss cross_entropy(std::span<float> logits, int32_t label, float scale);

/// The same on bfloat16 bits; computed in float32, the gradient rounded to the nearest.
RowLoss cross_entropy(std::span<uint16_t> logits, int32_t label, float scale);

}  // namespace medusa
