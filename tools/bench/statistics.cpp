#include "tools/bench/statistics.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"

namespace medusa {
namespace {

constexpr double kTail = 0.025;  // left out at either end

void add(PairedWork& sum, const PairedWork& more) {
  sum.tokens += more.tokens;
  sum.seconds += more.seconds;
  sum.yardstick_tokens += more.yardstick_tokens;
  sum.yardstick_seconds += more.yardstick_seconds;
}

double ratio(const PairedWork& sum) {
  return sum.tokens / sum.seconds / (sum.yardstick_tokens / sum.yardstick_seconds);
}

}  // namespace

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

double speedup(std::span<const PairedWork> questions) {
  PairedWork sum;
  for (const PairedWork& question : questions) add(sum, question);
  return ratio(sum);
}

std::optional<Interval> speedup_interval(std::span<const PairedWork> questions, uint64_t seed,
                                         int64_t resamples) {
  if (questions.size() < 2) return std::nullopt;
  const Random random(seed);
  std::vector<double> ratios;
  for (int64_t sample = 0; sample < resamples; ++sample) {
    PairedWork sum;
    for (uint64_t i = 0; i < questions.size(); ++i)
      add(sum, questions[random.bits(RandomUse::Bootstrap, sample, i) % questions.size()]);
    ratios.push_back(ratio(sum));
  }
  std::sort(ratios.begin(), ratios.end());
  return Interval{quantile(ratios, kTail), quantile(ratios, 1 - kTail)};
}

}  // namespace medusa
