// The exponential race of infer/gumbel_max.h, a block to a row. The winner is the same, but
// where two tokens arrive within the rounding of a logarithm.
#pragma once

#include "base/random.h"
#include "infer/cuda/best_logit.cuh"
#include "infer/cuda/exp_of_logit.cuh"

namespace medusa {
namespace {

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

/// Draws from softmax(row / T) with the random numbers of a position.
/// @param best  the row's largest logit: who meets it first is soon late.
__device__ inline int32_t gumbel_max_of_row(const float* row, int64_t size, const BestLogit& best,
                                            float inverse_temperature, const Random& random,
                                            int64_t position) {
  const auto uniform = [&](int64_t token) {
    return random.uniform(RandomUse::Accept, position, static_cast<uint64_t>(token));
  };
  const auto arrival = [](double weight, double u) { return -log(fmax(u, 0x1.0p-60)) / weight; };

  Arrival first{arrival(1, uniform(best.index)), best.index};
  for (int64_t i = thread_index(); i < size; i += kRowThreads) {
    const auto weight =
        static_cast<double>(exp_of_logit((row[i] - best.value) * inverse_temperature));
    const double u = uniform(i);
    if (1 - u >= first.time * weight) continue;  // -log(u) >= 1 - u: late without a logarithm
    const double time = arrival(weight, u);
    if (time < first.time) first = {time, static_cast<int32_t>(i)};
  }
  return reduce_block(first, earlier_of).token;
}

}  // namespace
}  // namespace medusa
