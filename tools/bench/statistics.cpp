#include "tools/bench/statistics.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "runtime/measure/quantiles.h"

namespace medusa {
namespace {

constexpr double kTail = 0.025;  // left out at either end

void add(PairedWork& sum, const PairedWork& more) {
  sum.tokens += more.tokens;
  sum.seconds += more.seconds;
  sum.baseline_tokens += more.baseline_tokens;
  sum.baseline_seconds += more.baseline_seconds;
}

double ratio(const PairedWork& sum) {
  return sum.tokens / sum.seconds / (sum.baseline_tokens / sum.baseline_seconds);
}

}  // namespace

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
