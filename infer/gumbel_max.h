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
#include "infer/row_chunks.h"

namespace medusa {

/// Who is first so far; of equal arrivals whoever was met first.
struct RaceLeader {
  TokenId token = 0;
  double time = std::numeric_limits<double>::infinity();

  /// The arrival that is_late() compares with: a little after `time`, so that no rounding makes a
  /// token late that would have won.
  static constexpr double kRoundedUp = 1 + 0x1.0p-50;

  /// Says whether a token cannot be earlier, found without a logarithm: -log(u) >= 1 - u.
  static bool is_late(double weight, double u, double time) {
    return 1 - u >= time * kRoundedUp * weight;
  }

  void meet(TokenId id, double weight, double u) {
    if (is_late(weight, u, time)) return;
    const double arrival = -std::log(std::max(u, 0x1.0p-60)) / weight;
    if (arrival >= time) return;
    time = arrival;
    token = id;
  }
};

/// A draw from softmax(row · scale).
struct RowDraw {
  TokenId token = 0;
  float max = 0;  // of the row
  float sum = 0;  // of the weights, roughly; not finite if the row is not: then nothing was drawn
};

/// The winner among tokens 0 to V - 1 with the weights of softmax_sums() (row_math.h), u being
/// random.uniform(use, position, token). The most probable token is met first: it rules most of the
/// others out.
/// @param row      [V], not empty.
/// @param threads  idle ones that help; null: none. The winner does not depend on them.
RowDraw draw_from_row(std::span<const float> row, float scale, const Random& random, RandomUse use,
                      int64_t position, ThreadPool* threads = nullptr);

}  // namespace medusa
