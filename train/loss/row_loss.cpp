#include "train/loss/row_loss.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "base/simd.h"

namespace medusa {
namespace {

constexpr float kNothing = -1e30F;  // stands behind the end of a row: no maximum, no probability

template <typename T>
MEDUSA_INLINE void load_some(const T* from, int64_t n, F32x16& x) {
  if (n >= kLanes) {
    load(from, x);
    return;
  }
  T part[kLanes] = {};
  std::copy_n(from, n, part);
  load(part, x);
  for (int64_t i = n; i < kLanes; ++i) x[i] = kNothing;
}

template <typename T>
MEDUSA_INLINE void store_some(const F32x16& x, int64_t n, T* to) {
  if (n >= kLanes) {
    store(x, to);
    return;
  }
  T part[kLanes];
  store(x, part);
  std::copy_n(part, n, to);
}

template <typename T>
MEDUSA_INLINE float value_at(const T* row, int64_t i) {
  F32x16 x;
  load_some(row + i, 1, x);
  return x[0];
}

/// The logits of a target, and where they lie.
struct Wanted {
  const int32_t* rows = nullptr;
  const float* probs = nullptr;
  int64_t count = 0;
  float logits[kMaxTargets] = {};
};

template <typename T>
MEDUSA_INLINE int32_t rank_of(const T* row, int64_t size, int32_t label) {
  const float wanted = value_at(row, label);
  F32x16 x, threshold;
  fill(wanted, threshold);
  I32x16 above{};
  for (int64_t i = 0; i < size; i += kLanes) {
    load_some(row + i, size - i, x);
    above -= i + kLanes <= label ? x >= threshold : x > threshold;  // true is -1 in a lane
  }
  int32_t rank = 0;
  for (int i = 0; i < kLanes; ++i) rank += above[i];
  for (int64_t i = label / kLanes * kLanes; i < label; ++i)  // equal ones beside the label
    rank += value_at(row, i) == wanted ? 1 : 0;
  return rank;
}

/// Where a target lies, the gradient again: the same e^x as for all others, less its share.
template <typename T>
MEDUSA_INLINE void subtract_target(const Wanted& wanted, float most, float factor, float scale,
                                   T* row) {
  for (int64_t i = 0; i < wanted.count; i += kLanes) {
    const int64_t n = std::min(kLanes, wanted.count - i);
    F32x16 x, shift;
    fill(most, shift);
    load_some(wanted.logits + i, n, x);
    x -= shift;
    exp_in_place(x);
    for (int64_t lane = 0; lane < n; ++lane) {
      F32x16 one;
      fill(x[lane] * factor - scale * wanted.probs[i + lane], one);
      store_some(one, 1, row + wanted.rows[i + lane]);
    }
  }
}

template <typename T>
MEDUSA_INLINE RowLoss row_loss(T* row, int64_t size, int32_t label, Wanted& wanted, float scale) {
  const int32_t rank = label < 0 ? std::numeric_limits<int32_t>::max() : rank_of(row, size, label);
  float expected = 0;  // logit, under the target
  for (int64_t i = 0; i < wanted.count; ++i) {
    wanted.logits[i] = value_at(row, wanted.rows[i]);
    expected += wanted.probs[i] * wanted.logits[i];
  }
  F32x16 x, largest;
  fill(kNothing, largest);
  for (int64_t i = 0; i < size; i += kLanes) {
    load_some(row + i, size - i, x);
    max_with(x, largest);
  }
  // e^x is kept in the row where it loses nothing there.
  const bool kept = std::is_same_v<T, float> && scale != 0;
  F32x16 shift, sum{};
  const float most = max_of(largest);
  fill(most, shift);
  for (int64_t i = 0; i < size; i += kLanes) {
    load_some(row + i, size - i, x);
    x -= shift;
    exp_in_place(x);
    sum += x;
    if (kept) store_some(x, size - i, row + i);
  }
  const float total = sum_of(sum);
  if (scale != 0) {
    F32x16 factor;
    fill(scale / total, factor);
    for (int64_t i = 0; i < size; i += kLanes) {
      load_some(row + i, size - i, x);
      if (!kept) {
        x -= shift;
        exp_in_place(x);
      }
      x *= factor;
      store_some(x, size - i, row + i);
    }
    subtract_target(wanted, most, scale / total, scale, row);
  }
  return {std::log(total) + most - expected, rank};
}

MEDUSA_WIDE RowLoss row_of_floats(float* row, int64_t size, int32_t label, Wanted& wanted,
                                  float scale) {
  return row_loss(row, size, label, wanted, scale);
}
MEDUSA_WIDE RowLoss row_of_halves(uint16_t* row, int64_t size, int32_t label, Wanted& wanted,
                                  float scale) {
  return row_loss(row, size, label, wanted, scale);
}

Wanted wanted_of(const RowTarget& target) {
  MEDUSA_ASSERT(!target.rows.empty() && target.rows.size() <= kMaxTargets &&
                    target.probs.size() == target.rows.size(),
                target.rows.size(), target.probs.size());
  return {target.rows.data(), target.probs.data(), static_cast<int64_t>(target.rows.size()), {}};
}

}  // namespace

RowLoss cross_entropy(std::span<float> logits, const RowTarget& target, float scale) {
  Wanted wanted = wanted_of(target);
  return row_of_floats(logits.data(), static_cast<int64_t>(logits.size()), target.label, wanted,
                       scale);
}
RowLoss cross_entropy(std::span<uint16_t> logits, const RowTarget& target, float scale) {
  Wanted wanted = wanted_of(target);
  return row_of_halves(logits.data(), static_cast<int64_t>(logits.size()), target.label, wanted,
                       scale);
}

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
  cross_entropy(logits, {-1, {rows, below}, {probs, below}}, scale * (together / alpha));
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
