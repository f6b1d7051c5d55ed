#include "runtime/measure/quantiles.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace medusa {

double quantile(std::vector<double> values, double q) {
  MEDUSA_ASSERT(!values.empty() && q >= 0 && q <= 1, values.size(), q);
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

size_t middle_of(std::span<const double> values) {
  MEDUSA_ASSERT(!values.empty());
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  return order[order.size() / 2];
}

}  // namespace medusa
