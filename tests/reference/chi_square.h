// Pearson's chi-square test of counts against a distribution.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace medusa::reference {

/// Chance of counts at least as far from the probabilities as these, when they were drawn from
/// them. Cells that expect fewer than 5 are taken together. Wilson and Hilferty's approximation.
inline double chi_square_p(const std::vector<int64_t>& counts,
                           const std::vector<double>& probabilities) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double statistic = 0, rest_count = 0, rest_expected = 0;
  int64_t cells = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * total, count = static_cast<double>(counts[i]);
    if (expected >= 5) {
      add(count, expected);
    } else {
      rest_count += count;
      rest_expected += expected;
    }
  }
  if (rest_expected > 0) add(rest_count, rest_expected);
  if (rest_expected <= 0 && rest_count > 0) return 0;  // what cannot happen happened
  if (cells < 2) return 1;
  const auto degrees = static_cast<double>(cells - 1);
  const double z =
      (std::cbrt(statistic / degrees) - (1 - 2 / (9 * degrees))) / std::sqrt(2 / (9 * degrees));
  return std::erfc(z / std::sqrt(2.0)) / 2;
}

}  // namespace medusa::reference
