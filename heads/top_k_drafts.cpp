#include "heads/top_k_drafts.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/simd.h"

namespace medusa {
namespace {

/// The best so far, kept in order.
class Best {
 public:
  explicit Best(std::span<ScoredRow> best) : best_(best) {}

  /// Rows come in ascending order, so an equal logit never displaces an earlier one.
  void offer(float logit, int32_t row) {
    if (filled_ == best_.size() && logit <= best_.back().logit) return;
    size_t place = filled_ == best_.size() ? filled_ - 1 : filled_++;
    for (; place > 0 && best_[place - 1].logit < logit; --place) best_[place] = best_[place - 1];
    best_[place] = {logit, row};
  }
  bool wants(float logit) const { return filled_ < best_.size() || logit > best_.back().logit; }

 private:
  std::span<ScoredRow> best_;
  size_t filled_ = 0;
};

constexpr int64_t kBlock = 4 * kLanes;  // logits compared with the worst of the best at one time

MEDUSA_WIDE float block_max(const float* logits) {
  F32x16 largest, x;
  load(logits, largest);
  for (int64_t i = kLanes; i < kBlock; i += kLanes) {
    load(logits + i, x);
    max_with(x, largest);
  }
  return max_of(largest);
}

/// Of the first size / kLanes * kLanes logits.
MEDUSA_WIDE float sum_of_exps(const float* logits, int64_t size, float subtract) {
  F32x16 sum{}, x, shift;
  fill(subtract, shift);
  for (int64_t i = 0; i + kLanes <= size; i += kLanes) {
    load(logits + i, x);
    x -= shift;
    exp_in_place(x);
    sum += x;
  }
  return sum_of(sum);
}

}  // namespace

float top_k_drafts(std::span<const float> logits, std::span<ScoredRow> best) {
  const auto size = static_cast<int64_t>(logits.size());
  MEDUSA_ASSERT(!best.empty() && best.size() <= logits.size(), best.size(), logits.size());
  Best found(best);
  int64_t begin = 0;
  for (; begin + kBlock <= size; begin += kBlock) {
    if (!found.wants(block_max(logits.data() + begin))) continue;
    for (int64_t i = begin; i < begin + kBlock; ++i)
      found.offer(logits[static_cast<size_t>(i)], static_cast<int32_t>(i));
  }
  for (int64_t i = begin; i < size; ++i)
    found.offer(logits[static_cast<size_t>(i)], static_cast<int32_t>(i));

  const float largest = best[0].logit;
  float sum = sum_of_exps(logits.data(), size, largest);
  for (int64_t i = size / kLanes * kLanes; i < size; ++i)
    sum += std::exp(logits[static_cast<size_t>(i)] - largest);
  return largest + std::log(sum);
}

}  // namespace medusa
