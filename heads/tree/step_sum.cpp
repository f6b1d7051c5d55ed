#include "heads/tree/step_sum.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace medusa {

Estimate tokens_per_step(std::span<const StepSum> answers, const Random& random,
                         int64_t num_resamples) {
  MEDUSA_ASSERT(!answers.empty() && num_resamples > 0, answers.size(), num_resamples);
  StepSum whole;
  for (const StepSum& answer : answers) whole += answer;
  MEDUSA_ASSERT(whole.steps > 0);
  std::vector<double> resampled;
  for (int64_t sample = 0; sample < num_resamples; ++sample) {
    StepSum drawn;
    for (size_t i = 0; i < answers.size(); ++i)
      drawn += answers[random.bits(RandomUse::Bootstrap, sample, i) % answers.size()];
    resampled.push_back(drawn.steps > 0 ? drawn.tokens / drawn.steps : whole.tokens / whole.steps);
  }
  std::sort(resampled.begin(), resampled.end());
  const auto quantile = [&](double share) {
    return resampled[static_cast<size_t>(share * static_cast<double>(resampled.size() - 1) + 0.5)];
  };
  return {whole.tokens / whole.steps, quantile(0.025), quantile(0.975)};
}

}  // namespace medusa
