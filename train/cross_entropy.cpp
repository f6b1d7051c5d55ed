#include "train/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "base/lanes.h"

namespace medusa {
namespace {

constexpr float kNothing = -1e30F;  // stands behind the end of a row: no maximum, no probability

template <typename T>
MEDUSA_INLINE void load_some(const T* from, int64_t n, Lanes& x) {
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
MEDUSA_INLINE void store_some(const Lanes& x, int64_t n, T* to) {
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
  Lanes x;
  load_some(row + i, 1, x);
  return x[0];
}

template <typename T>
MEDUSA_INLINE RowLoss row_loss(T* row, int64_t size, int32_t label, float scale) {
  const float wanted = value_at(row, label);
  Lanes x, largest, threshold;
  fill(kNothing, largest);
  fill(wanted, threshold);
  IntLanes above{};
  for (int64_t i = 0; i < size; i += kLanes) {
    load_some(row + i, size - i, x);
    max_with(x, largest);
    above -= i + kLanes <= label ? x >= threshold : x > threshold;  // true is -1 in a lane
  }
  int32_t rank = 0;
  for (int i = 0; i < kLanes; ++i) rank += above[i];
  for (int64_t i = label / kLanes * kLanes; i < label; ++i)  // equal ones beside the label
    rank += value_at(row, i) == wanted ? 1 : 0;

  Lanes shift, sum{};
  const float most = max_of(largest);
  fill(most, shift);
  for (int64_t i = 0; i < size; i += kLanes) {
    load_some(row + i, size - i, x);
    x -= shift;
    exp_in_place(x);
    sum += x;
  }
  const float total = sum_of(sum);
  if (scale != 0) {
    Lanes factor;
    fill(scale / total, factor);
    for (int64_t i = 0; i < size; i += kLanes) {
      load_some(row + i, size - i, x);
      x -= shift;
      exp_in_place(x);
      x *= factor;
      if (label >= i && label < i + kLanes) x[label - i] -= scale;
      store_some(x, size - i, row + i);
    }
  }
  return {std::log(total) + most - wanted, rank};
}

MEDUSA_WIDE RowLoss row_of_floats(float* row, int64_t size, int32_t label, float scale) {
  return row_loss(row, size, label, scale);
}
MEDUSA_WIDE RowLoss row_of_halves(uint16_t* row, int64_t size, int32_t label, float scale) {
  return row_loss(row, size, label, scale);
}

}  // namespace

RowLoss cross_entropy(std::span<float> logits, int32_t label, float scale) {
  return row_of_floats(logits.data(), static_cast<int64_t>(logits.size()), label, scale);
}
RowLoss cross_entropy(std::span<uint16_t> logits, int32_t label, float scale) {
  return row_of_halves(logits.data(), static_cast<int64_t>(logits.size()), label, scale);
}

}  // namespace medusa
