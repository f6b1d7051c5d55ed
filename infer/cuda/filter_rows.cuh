// Which tokens of a row top-k, top-p and min-p leave, and a draw from these. The same sets as
// infer/sampling.cpp's: weights have the same bits there and here, and masses are added as whole
// numbers, so in any order.
#pragma once

#include "infer/cuda/logit_rows.cuh"
#include "infer/cuda/step_kernels.h"

namespace medusa {
namespace {

/// A row's logits as weights: the largest one's is 1.
struct WeighedRow {
  const float* logits;
  int64_t size;
  float largest;
  float inverse_temperature;

  __device__ float weight(int64_t i) const {
    return exp_of_logit((logits[i] - largest) * inverse_temperature);
  }
};

/// Of some tokens.
struct TokenMass {
  uint64_t mass;   // Σ of weights, in 2^-44
  uint64_t count;  // not more than a vocabulary
};

__device__ inline TokenMass sum_of_masses(const TokenMass& a, const TokenMass& b) {
  return {a.mass + b.mass, a.count + b.count};
}
__device__ inline TokenMass of_lane(const TokenMass& mine, int mask) {
  return {shuffle_xor(mine.mass, mask), shuffle_xor(mine.count, mask)};
}

__device__ inline uint64_t mass_of(float weight) {
  return static_cast<uint64_t>(weight * 0x1p44F);  // of 2^18 tokens less than 2^63
}

/// @param belongs  of a weight and its token.
template <typename Threads, typename Belongs>
__device__ TokenMass mass_where(const WeighedRow& row, const Belongs& belongs) {
  TokenMass sum{0, 0};
  for (int64_t i = Threads::index(); i < row.size; i += Threads::kAll) {
    const float weight = row.weight(i);
    if (belongs(weight, i)) sum = sum_of_masses(sum, {mass_of(weight), 1});
  }
  return Threads::reduce(sum, sum_of_masses);
}

/// The least probable token that is kept. Of tokens that weigh the same, lower ids are more
/// probable.
struct KeptBound {
  uint32_t weight_bits;  // of floats that are not negative, larger bits are larger numbers
  int64_t last;          // id of the last one kept of this weight

  __device__ bool keeps(float weight, int64_t token) const {
    const uint32_t bits = bits_of_float(weight);
    return bits > weight_bits || (bits == weight_bits && token <= last);
  }
};

constexpr int64_t kAllTokens = INT64_MAX;

__device__ inline KeptBound less_of(const KeptBound& a, const KeptBound& b) {
  const bool a_keeps_less =
      a.weight_bits > b.weight_bits || (a.weight_bits == b.weight_bits && a.last < b.last);
  return a_keeps_less ? a : b;
}

/// The bound of the fewest most probable tokens that are enough; all if they never are.
/// @param enough  of their mass and number, at least one.
template <typename Threads, typename Enough>
__device__ KeptBound fewest_tokens(const WeighedRow& row, const Enough& enough) {
  KeptBound bound{0, kAllTokens};
  for (uint32_t bit = 1U << 29; bit != 0; bit >>= 1) {  // a weight is at most 1, 0x3F800000
    const uint32_t least = bound.weight_bits | bit;
    const auto is_above = [least](float weight, int64_t) { return bits_of_float(weight) >= least; };
    if (enough(mass_where<Threads>(row, is_above))) bound.weight_bits = least;
  }
  const uint32_t bits = bound.weight_bits;
  const TokenMass above = mass_where<Threads>(
      row, [bits](float weight, int64_t) { return bits_of_float(weight) > bits; });
  const TokenMass equal = mass_where<Threads>(
      row, [bits](float weight, int64_t) { return bits_of_float(weight) == bits; });
  const uint64_t mass = mass_of(float_of_bits(bits));
  uint64_t wanted = 1, most = equal.count;  // how many of the equal ones are kept
  while (wanted < most) {
    const uint64_t half = (wanted + most) / 2;
    if (enough(TokenMass{above.mass + half * mass, above.count + half}))
      most = half;
    else
      wanted = half + 1;
  }
  if (wanted >= equal.count) return bound;
  bound.last = 0;
  for (int64_t bit = int64_t{1} << 30; bit != 0; bit >>= 1) {
    const int64_t next = bound.last | bit;
    if (next >= row.size) continue;
    const auto is_before = [bits, next](float weight, int64_t token) {
      return bits_of_float(weight) == bits && token < next;
    };
    if (mass_where<Threads>(row, is_before).count < wanted) bound.last = next;
  }
  return bound;
}

/// What top-k and then top-p keep.
template <typename Threads>
__device__ KeptBound bound_of(const WeighedRow& row, const LogitFilter& filter) {
  KeptBound bound{0, kAllTokens};
  if (filter.top_k > 0) {
    const auto k = static_cast<uint64_t>(filter.top_k);
    bound = fewest_tokens<Threads>(row, [k](const TokenMass& kept) { return kept.count >= k; });
  }
  if (filter.top_p >= 1) return bound;
  const TokenMass all = mass_where<Threads>(
      row, [bound](float weight, int64_t token) { return bound.keeps(weight, token); });
  const double reached = filter.top_p * static_cast<double>(all.mass);
  return less_of(bound, fewest_tokens<Threads>(row, [reached](const TokenMass& kept) {
                   return kept.count > 0 && static_cast<double>(kept.mass) >= reached;
                 }));
}

/// As gumbel_max_of_row(), among what the filter leaves.
template <typename Threads>
__device__ int32_t filtered_draw_of_row(const float* logits, int64_t size, const BestLogit& best,
                                        float inverse_temperature, const LogitFilter& filter,
                                        const Random& random, int64_t position) {
  const WeighedRow row{logits, size, best.value, inverse_temperature};
  const KeptBound bound = bound_of<Threads>(row, filter);
  Arrival first{INFINITY, kNoIndex};
  for (int64_t i = Threads::index(); i < size; i += Threads::kAll) {
    const float weight = row.weight(i);
    if (weight == 0 || weight < filter.min_p || !bound.keeps(weight, i)) continue;
    const double u = random.uniform(RandomUse::Accept, position, static_cast<uint64_t>(i));
    if (1 - u >= first.time * static_cast<double>(weight)) continue;
    const double time = arrival_of(static_cast<double>(weight), u);
    if (time < first.time) first = {time, static_cast<int32_t>(i)};
  }
  return Threads::reduce(first, earlier_of).token;
}

}  // namespace
}  // namespace medusa
