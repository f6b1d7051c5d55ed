// What the rules ask of each row of logits (step_kernels.h), a block to a row.
#pragma once

#include "infer/cuda/filter_rows.cuh"
#include "infer/cuda/logit_rows.cuh"
#include "infer/cuda/step_kernels.h"

namespace medusa {
namespace {

/// Of exponents x below the largest: Σ exp(x), Σ x exp(x).
struct ExponentialSums {
  double sum;
  double weighted;
};

__device__ inline ExponentialSums sum_of(const ExponentialSums& a, const ExponentialSums& b) {
  return {a.sum + b.sum, a.weighted + b.weighted};
}
__device__ inline ExponentialSums of_lane(const ExponentialSums& mine, int mask) {
  return {shuffle_xor(mine.sum, mask), shuffle_xor(mine.weighted, mask)};
}

__device__ inline ExponentialSums sums_of_row(const float* row, int64_t size, float largest,
                                              float inverse_temperature) {
  ExponentialSums sums{0, 0};
  for (int64_t i = thread_index(); i < size; i += kRowThreads) {
    const float x = (row[i] - largest) * inverse_temperature;
    const float e = exp_of_logit(x);
    sums.sum += static_cast<double>(e);
    sums.weighted += static_cast<double>(e * fmaxf(x, kLowestExponent));  // never 0 · -inf
  }
  return reduce_block(sums, sum_of);
}

/// As TypicalRule takes it.
__device__ inline float inverse_of(double temperature) {
  return static_cast<float>(temperature > 0 ? 1 / temperature : 1.0);
}

/// @tparam kFilters  for Match.
template <DeviceRule kRule, bool kFilters>
__global__ void __launch_bounds__(kRowThreads, 1) verify_rows_kernel(const VerifyRowsArgs args) {
  begin_kernel();
  const auto r = static_cast<int64_t>(blockIdx.x);
  const float* row = args.logits + r * args.vocab_size;
  const BestLogit best = best_of_row(row, args.vocab_size);
  int32_t token = best.index;
  if constexpr (kRule != DeviceRule::Greedy)
    if (args.temperature > 0) {
      const Random random(args.seeds[r / args.rows_per_sequence]);
      const float inverse = inverse_of(args.temperature);
      token = kFilters ? filtered_draw_of_row(row, args.vocab_size, best, inverse, args.filter,
                                              random, args.positions[r])
                       : gumbel_max_of_row(row, args.vocab_size, best, inverse, random,
                                           args.positions[r]);
    }
  if (thread_index() == 0) args.tokens[r] = token;

  if constexpr (kRule == DeviceRule::Typical) {
    const ExponentialSums sums =
        sums_of_row(row, args.vocab_size, best.value, inverse_of(args.temperature));
    if (thread_index() != 0) return;
    const double log_sum = log(sums.sum);
    const double entropy = log_sum - sums.weighted / sums.sum;
    args.maxima[r] = best.value;
    args.log_sums[r] = static_cast<float>(log_sum);
    args.thresholds[r] = static_cast<float>(fmin(args.epsilon, args.delta * exp(-entropy)));
  }
}

void verify_rows(const VerifyRowsArgs& args, DeviceStream stream) {
  const auto start = [&](auto kernel) {
    launch(kernel, dim3(static_cast<unsigned>(args.num_rows)), kRowThreads, 0, stream, args);
  };
  switch (args.rule) {
    case DeviceRule::Greedy:
      return start(verify_rows_kernel<DeviceRule::Greedy, false>);
    case DeviceRule::Match:
      return args.filter.filters() ? start(verify_rows_kernel<DeviceRule::Match, true>)
                                   : start(verify_rows_kernel<DeviceRule::Match, false>);
    case DeviceRule::Typical:
      return start(verify_rows_kernel<DeviceRule::Typical, false>);
  }
}

}  // namespace
}  // namespace medusa
