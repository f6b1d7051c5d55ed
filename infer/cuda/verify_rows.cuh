// What the rules ask of each row of logits (step_kernels.h).
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

template <typename Threads>
__device__ ExponentialSums sums_of_row(const float* row, int64_t size, float largest,
                                       float inverse_temperature) {
  ExponentialSums sums{0, 0};
  for_each_own<Threads>(row, size, [&](float logit, int64_t) {
    const float x = (logit - largest) * inverse_temperature;
    const float e = exp_of_logit(x);
    sums.sum += static_cast<double>(e);
    sums.weighted += static_cast<double>(e * fmaxf(x, kLowestExponent));  // never 0 · -inf
  });
  return Threads::reduce(sums, sum_of);
}

/// As TypicalRule takes it.
__device__ inline float inverse_of(double temperature) {
  return static_cast<float>(temperature > 0 ? 1 / temperature : 1.0);
}

__device__ inline bool is_finite(float x) { return x - x == 0; }

/// @tparam kFilters  for Match.
/// @tparam kBlocks   of a row.
template <DeviceRule kRule, bool kFilters, int kBlocks>
__global__ void __launch_bounds__(RowThreads<kBlocks>::kOfBlock, 1)
    verify_rows_kernel(const VerifyRowsArgs args) {
  using Threads = RowThreads<kBlocks>;
  begin_kernel();
  const int64_t r = Threads::row();
  const bool writes = Threads::index() == 0;
  const float* row = args.logits + r * args.vocab_size;
  const BestLogit best = best_of_row<Threads>(row, args.vocab_size);
  if (!is_finite(best.value)) {
    if (!writes) return;
    args.tokens[r] = kNoToken;
    if constexpr (kRule == DeviceRule::Typical) {
      args.maxima[r] = args.log_sums[r] = 0;
      args.thresholds[r] = INFINITY;  // no child stands
    }
    return;
  }
  int32_t token = best.index;
  if constexpr (kRule != DeviceRule::Greedy)
    if (args.temperature > 0) {
      const Random random(args.seeds[r / args.rows_per_sequence]);
      const float inverse = inverse_of(args.temperature);
      token = kFilters ? filtered_draw_of_row<Threads>(row, args.vocab_size, best, inverse,
                                                       args.filter, random, args.positions[r])
                       : gumbel_max_of_row<Threads>(row, args.vocab_size, best, inverse, random,
                                                    args.positions[r]);
    }
  if (writes) args.tokens[r] = token;

  if constexpr (kRule == DeviceRule::Typical) {
    const ExponentialSums sums =
        sums_of_row<Threads>(row, args.vocab_size, best.value, inverse_of(args.temperature));
    if (!writes) return;
    const double log_sum = log(sums.sum);
    const double entropy = log_sum - sums.weighted / sums.sum;
    args.maxima[r] = best.value;
    args.log_sums[r] = static_cast<float>(log_sum);
    args.thresholds[r] = static_cast<float>(fmin(args.epsilon, args.delta * exp(-entropy)));
  }
}

template <DeviceRule kRule, bool kFilters>
void verify_rows_by(const VerifyRowsArgs& args, DeviceStream stream) {
  launch_rows(verify_rows_kernel<kRule, kFilters, kRowBlocks>,
              verify_rows_kernel<kRule, kFilters, 1>, args.num_rows, kPartsBytes, stream, args);
}

void verify_rows(const VerifyRowsArgs& args, DeviceStream stream) {
  switch (args.rule) {
    case DeviceRule::Greedy:
      return verify_rows_by<DeviceRule::Greedy, false>(args, stream);
    case DeviceRule::Match:
      return args.filter.filters() ? verify_rows_by<DeviceRule::Match, true>(args, stream)
                                   : verify_rows_by<DeviceRule::Match, false>(args, stream);
    case DeviceRule::Typical:
      return verify_rows_by<DeviceRule::Typical, false>(args, stream);
  }
}

}  // namespace
}  // namespace medusa
