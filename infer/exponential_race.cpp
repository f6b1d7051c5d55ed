#include "infer/exponential_race.h"

#include <cstddef>

#include "base/lanes.h"

namespace medusa {
namespace {

constexpr size_t kBlock = 256;  // tokens that are ruled out together

/// Whether any of the tokens [first, first + n) may arrive before `time`.
MEDUSA_WIDE bool any_in_time(const float* weights, size_t first, size_t n, double time,
                             const Random& random, RandomUse use, int64_t position) {
  uint64_t any = 0;
  for (size_t i = 0; i < n; ++i) {
    const double u = random.uniform(use, position, first + i);
    any |= RaceLeader::is_late(static_cast<double>(weights[first + i]), u, time) ? 0 : 1;
  }
  return any != 0;
}

}  // namespace

TokenId exponential_race(std::span<const float> weights, TokenId favourite, const Random& random,
                         RandomUse use, int64_t position) {
  RaceLeader leader{favourite};
  const auto meet = [&](size_t i) {
    leader.meet(static_cast<TokenId>(i), static_cast<double>(weights[i]),
                random.uniform(use, position, i));
  };
  meet(static_cast<size_t>(favourite));
  for (size_t first = 0; first < weights.size(); first += kBlock) {
    const size_t n = std::min(kBlock, weights.size() - first);
    if (!any_in_time(weights.data(), first, n, leader.time, random, use, position)) continue;
    for (size_t i = first; i < first + n; ++i)
      if (weights[i] > 0) meet(i);
  }
  return leader.token;
}

}  // namespace medusa
