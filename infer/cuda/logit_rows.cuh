// A row of logits shared by many threads: its largest, its exponentials, and a draw.
#pragma once

#include "base/random.h"
#include "infer/cuda/row_threads.cuh"

namespace medusa {
namespace {

/// The largest of many logits and where it stands; of equals the first.
struct BestLogit {
  float value;
  int32_t index;
};

constexpr int32_t kNoIndex = 0x7FFFFFFF;

/// Worse than any logit.
__device__ inline BestLogit no_logit() { return {-INFINITY, kNoIndex}; }

/// A NaN is better than any number, so a row that has one is known by its best.
__device__ inline bool is_better(const BestLogit& a, const BestLogit& b) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan;
  return a.value > b.value || ((a_is_nan || a.value == b.value) && a.index < b.index);
}
__device__ inline BestLogit better_of(const BestLogit& a, const BestLogit& b) {
  return is_better(a, b) ? a : b;
}
/// What the lane whose number differs in these bits holds.
__device__ inline BestLogit of_lane(const BestLogit& mine, int mask) {
  return {shuffle_xor(mine.value, mask), shuffle_xor(mine.index, mask)};
}

/// Of a row, known to all of its threads.
template <typename Threads>
__device__ BestLogit best_of_row(const float* row, int64_t size) {
  BestLogit best = no_logit();
  for_each_own<Threads>(row, size, [&](float logit, int64_t i) {
    best = better_of(best, {logit, static_cast<int32_t>(i)});
  });
  return Threads::reduce(best, better_of);
}

constexpr float kLowestExponent = -87.0F;  // exp of less is taken as 0

/// exp of what a logit is below its row's largest, with the arithmetic of infer/row_math.cpp as a
/// CPU with fused multiply-add does it: weights are the same bits there and here.
/// @param exponent  at most 0.
__device__ inline float exp_of_logit(float exponent) {
  if (exponent < kLowestExponent) return 0;
  const int whole = static_cast<int>(fmaf(exponent, 1.44269504F, -0.5F));
  const auto n = static_cast<float>(whole);
  const float f = fmaf(n, 2.12194440e-4F, fmaf(-n, 0.693359375F, exponent));
  float p = 1.0F / 720;
  p = fmaf(p, f, 1.0F / 120);
  p = fmaf(p, f, 1.0F / 24);
  p = fmaf(p, f, 1.0F / 6);
  p = fmaf(p, f, 0.5F);
  p = fmaf(p, f, 1.0F);
  p = fmaf(p, f, 1.0F);
  return p * float_of_bits(static_cast<uint32_t>(whole + 127) << 23);
}

struct Arrival {
  double time;
  int32_t token;
};

__device__ inline Arrival earlier_of(const Arrival& a, const Arrival& b) {
  if (a.time != b.time) return a.time < b.time ? a : b;
  return a.token < b.token ? a : b;
}
__device__ inline Arrival of_lane(const Arrival& mine, int mask) {
  return {shuffle_xor(mine.time, mask), shuffle_xor(mine.token, mask)};
}

__device__ inline double arrival_of(double weight, double u) {
  return -log(fmax(u, 0x1.0p-60)) / weight;
}

/// Draws from softmax(row / T) with the random numbers of a position: the exponential race of
/// infer/gumbel_max.h. The winner is the same, but where two tokens arrive within the rounding of a
/// logarithm.
/// @param best  the row's largest logit, which is finite: who meets it first is soon late.
template <typename Threads>
__device__ int32_t gumbel_max_of_row(const float* row, int64_t size, const BestLogit& best,
                                     float inverse_temperature, const Random& random,
                                     int64_t position) {
  const auto uniform = [&](int64_t token) {
    return random.uniform(RandomUse::Accept, position, static_cast<uint64_t>(token));
  };

  Arrival first{arrival_of(1, uniform(best.index)), best.index};
  for_each_own<Threads>(row, size, [&](float logit, int64_t i) {
    const auto weight =
        static_cast<double>(exp_of_logit((logit - best.value) * inverse_temperature));
    const double u = uniform(i);
    if (1 - u >= first.time * weight) return;  // -log(u) >= 1 - u: late without a logarithm
    const double time = arrival_of(weight, u);
    if (time < first.time) first = {time, static_cast<int32_t>(i)};
  });
  return Threads::reduce(first, earlier_of).token;
}

}  // namespace
}  // namespace medusa
