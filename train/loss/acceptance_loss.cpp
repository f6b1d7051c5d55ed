#include "train/loss/acceptance_loss.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace medusa {
namespace {

float value_of(float logit) { return logit; }
float value_of(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// With S the target's tokens whose q is below p, Q their q together:
///   d(-log alpha) / dz_j = Q / alpha (q_j - [j in S] q_j / Q),
/// which is cross-entropy's gradient against q cut to S, times Q / alpha. So its row kernel serves.
template <typename T>
RowLoss row_of(std::span<T> logits, const RowTarget& target, float scale) {
  float expected = 0;  // logit, under the target
  for (size_t i = 0; i < target.rows.size(); ++i)
    expected += target.probs[i] * value_of(logits[static_cast<size_t>(target.rows[i])]);
  RowLoss out = cross_entropy(logits, target, /*scale=*/0);
  const float log_total = out.loss + expected;

  int32_t rows[kMaxTargets];
  float probs[kMaxTargets];
  size_t below = 0;
  float alpha = 0, together = 0;
  for (size_t i = 0; i < target.rows.size(); ++i) {
    const float q = std::exp(value_of(logits[static_cast<size_t>(target.rows[i])]) - log_total);
    alpha += std::min(q, target.probs[i]);
    if (q >= target.probs[i]) continue;
    rows[below] = target.rows[i];
    probs[below++] = q;
    together += q;
  }
  // So far away that every q vanishes, it points where cross-entropy does.
  if (alpha == 0) return cross_entropy(logits, target, scale);
  out.loss = -std::log(alpha);
  if (scale == 0) return out;
  if (below == 0) {                                // nothing is missing
    std::fill(logits.begin(), logits.end(), T{});  // zero in both types
    return out;
  }
  for (size_t i = 0; i < below; ++i) probs[i] /= together;
  cross_entropy(logits, {-1, {rows, below}, {probs, below}}, scale * together / alpha);
  return out;
}

}  // namespace

RowLoss acceptance_loss(std::span<float> logits, const RowTarget& target, float scale) {
  return row_of(logits, target, scale);
}
RowLoss acceptance_loss(std::span<uint16_t> logits, const RowTarget& target, float scale) {
  return row_of(logits, target, scale);
}

}  // namespace medusa
