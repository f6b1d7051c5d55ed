#include "heads/draft_temperature.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace medusa {
namespace {

constexpr double kLeastRest = 1e-6;  // so that its logarithm is finite
constexpr double kMostTemperature = 8;
constexpr int kHalvings = 40;  // of an interval of length 64

/// Of everything that is not among the drafts.
double log_rest(std::span<const float> log_probs) {
  double rest = 1;
  for (const float log_prob : log_probs) rest -= std::exp(static_cast<double>(log_prob));
  return std::log(std::max(rest, kLeastRest));
}

}  // namespace

void at_temperature(std::span<const float> log_probs, double temperature, std::span<double> out) {
  MEDUSA_ASSERT(temperature > 0 && out.size() == log_probs.size(), temperature, out.size());
  double sum = std::exp(log_rest(log_probs) / temperature);
  for (const float log_prob : log_probs) sum += std::exp(log_prob / temperature);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::min(0.0, log_probs[i] / temperature - std::log(sum));
}

void TemperatureFit::add_answer(const HeadDrafts& drafts, std::span<const TokenId> answer) {
  const auto num_heads = static_cast<int64_t>(heads_.size());
  const auto length = static_cast<int64_t>(answer.size());
  MEDUSA_ASSERT(drafts.num_heads == num_heads, drafts.num_heads, num_heads);
  for (int64_t i = 0; i < drafts.size() && i + num_heads < length; ++i)
    for (int64_t head = 0; head < num_heads; ++head) {
      Observations& seen = heads_[static_cast<size_t>(head)];
      seen.num_outcomes = drafts.top_k + 1;
      const TokenId truth = answer[static_cast<size_t>(i + 1 + head)];
      std::vector<float> log_probs;
      auto true_rank = static_cast<int32_t>(drafts.top_k);
      for (int64_t rank = 0; rank < drafts.top_k; ++rank) {
        log_probs.push_back(drafts.log_prob(i, head, rank));
        if (drafts.token(i, head, rank) == truth) true_rank = static_cast<int32_t>(rank);
      }
      seen.log_probs.insert(seen.log_probs.end(), log_probs.begin(), log_probs.end());
      seen.log_probs.push_back(log_rest(log_probs));
      seen.true_ranks.push_back(true_rank);
    }
}

/// Derivative of the mean of -log p(T) by 1/T: how much larger the outcomes' mean log-probability
/// is than the true one's. It grows with 1/T, so there is one minimum.
double TemperatureFit::slope(const Observations& seen, double inverse_temperature) {
  double slope = 0;
  for (size_t n = 0; n < seen.true_ranks.size(); ++n) {
    const auto outcomes = std::span(seen.log_probs)
                              .subspan(n * static_cast<size_t>(seen.num_outcomes),
                                       static_cast<size_t>(seen.num_outcomes));
    double sum = 0, mean = 0;
    for (const double log_prob : outcomes) {
      const double weight = std::exp(inverse_temperature * log_prob);
      sum += weight;
      mean += weight * log_prob;
    }
    slope += mean / sum - outcomes[static_cast<size_t>(seen.true_ranks[n])];
  }
  return slope;
}

double TemperatureFit::fit(const Observations& seen) {
  if (seen.true_ranks.empty()) return 1;
  double low = 1 / kMostTemperature, high = kMostTemperature;  // of 1/T
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (slope(seen, middle) < 0 ? low : high) = middle;
  }
  return 2 / (low + high);
}

std::vector<double> TemperatureFit::temperatures() const {
  std::vector<double> out;
  for (const Observations& seen : heads_) out.push_back(fit(seen));
  return out;
}

}  // namespace medusa
