// Drawing by an exponential race: each token arrives after -log(u) / weight, and the first wins
// (the Gumbel-max trick, Gumbel 1954, without its outer logarithm).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/random.h"
#include "base/token.h"

namespace medusa {

/// Who is first so far.
struct RaceLeader {
  TokenId token = 0;
  double time = std::numeric_limits<double>::infinity();

  /// Whether a token cannot be earlier, found without a logarithm: -log(u) >= 1 - u.
  static bool is_late(double weight, double u, double time) { return 1 - u >= time * weight; }

  void meet(TokenId id, double weight, double u) {
    if (is_late(weight, u, time)) return;
    const double arrival = -std::log(std::max(u, 0x1.0p-60)) / weight;
    if (arrival >= time) return;
    time = arrival;
    token = id;
  }
};

/// The winner among tokens 0 to V - 1, u being random.uniform(use, position, token).
/// @param weights   [V], any sum; those of weight 0 do not run.
/// @param favourite  a token of large weight: met first, it rules most of the others out in passes
///                   that the compiler vectorises.
TokenId exponential_race(std::span<const float> weights, TokenId favourite, const Random& random,
                         RandomUse use, int64_t position);

}  // namespace medusa
