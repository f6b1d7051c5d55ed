#include "infer/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "infer/exponential_race.h"
#include "infer/row_math.h"

namespace medusa {
namespace {

struct Weighted {
  float weight;  // not normalised
  TokenId id;
};

bool more_probable(const Weighted& a, const Weighted& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

/// A model whose file is damaged, or whose states are too large for the dtype, gives such logits.
[[noreturn]] void refuse_logits() {
  throw UserError(
      "the model: gives logits that are not finite, expected numbers; get its file again, as its "
      "weights may be damaged, or try --dtype float32");
}

/// The largest logit.
float finite_max(std::span<const float> logits) {
  const float best = row_max(logits);
  if (!std::isfinite(best)) refuse_logits();
  return best;
}

/// The k largest, sorted.
std::vector<Weighted> largest(std::span<const float> weights, size_t k) {
  std::vector<Weighted> heap;  // its front is the least of those kept
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weighted token{weights[i], static_cast<TokenId>(i)};
    if (heap.size() == k) {
      if (!more_probable(token, heap.front())) continue;
      std::pop_heap(heap.begin(), heap.end(), more_probable);
      heap.back() = token;
    } else {
      heap.push_back(token);
    }
    std::push_heap(heap.begin(), heap.end(), more_probable);
  }
  std::sort_heap(heap.begin(), heap.end(), more_probable);
  return heap;
}

/// All tokens that can belong to the nucleus, unsorted. Those below (1 - p) / V together weigh less
/// than 1 - p, so the smallest set that reaches p needs none of them.
std::vector<Weighted> nucleus_candidates(std::span<const float> weights, double sum, double top_p) {
  const auto least = static_cast<float>((1 - top_p) * sum / static_cast<double>(weights.size()));
  std::vector<Weighted> tokens;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] >= least) tokens.push_back({weights[i], static_cast<TokenId>(i)});
  return tokens;
}

/// The smallest set of most probable tokens that reaches top_p · sum, sorted.
std::vector<Weighted> nucleus(std::vector<Weighted> tokens, double sum, double top_p) {
  const auto less = [](const Weighted& a, const Weighted& b) { return more_probable(b, a); };
  std::make_heap(tokens.begin(), tokens.end(), less);
  std::vector<Weighted> kept;
  double reached = 0;
  while (!tokens.empty() && (kept.empty() || reached < top_p * sum)) {
    std::pop_heap(tokens.begin(), tokens.end(), less);
    kept.push_back(tokens.back());
    reached += static_cast<double>(kept.back().weight);
    tokens.pop_back();
  }
  return kept;
}

}  // namespace

TokenId argmax(std::span<const float> logits) {
  const float best = finite_max(logits);
  const auto first = std::find(logits.begin(), logits.end(), best);
  if (first == logits.end()) refuse_logits();  // a NaN equals nothing
  return static_cast<TokenId>(first - logits.begin());
}

LogProbabilities::LogProbabilities(std::span<const float> logits)
    : logits_(logits),
      max_(row_max(logits)),
      log_sum_(std::log(row_exp_sums(logits, max_, 1).sum)) {}

double log_probability(std::span<const float> logits, TokenId token) {
  return LogProbabilities(logits).of(token);
}

std::vector<TokenId> largest_tokens(std::span<const float> logits, int64_t count) {
  MEDUSA_ASSERT(count >= 1, count);
  std::vector<TokenId> ids;
  for (const Weighted& token : largest(logits, static_cast<size_t>(count))) ids.push_back(token.id);
  return ids;
}

std::vector<WeightedToken> target_distribution(std::span<const float> logits,
                                               const SamplingConfig& config) {
  MEDUSA_ASSERT(config.temperature > 0, config.temperature);
  thread_local std::vector<float> weights;
  weights.resize(logits.size());
  double sum =
      row_exp(logits, finite_max(logits), static_cast<float>(1 / config.temperature), weights);
  if (!std::isfinite(sum)) refuse_logits();

  const auto least = static_cast<float>(config.min_p);  // the most probable token weighs 1
  std::vector<Weighted> kept;
  if (config.top_k > 0) {
    kept = largest(weights, static_cast<size_t>(config.top_k));
    sum = 0;
    for (const Weighted& token : kept) sum += static_cast<double>(token.weight);
    if (config.top_p < 1) kept = nucleus(std::move(kept), sum, config.top_p);
  } else if (config.top_p < 1) {
    kept = nucleus(nucleus_candidates(weights, sum, config.top_p), sum, config.top_p);
  } else {
    if (config.min_p == 0) kept.reserve(weights.size());
    for (size_t i = 0; i < weights.size(); ++i)
      if (weights[i] >= least) kept.push_back({weights[i], static_cast<TokenId>(i)});
  }
  std::erase_if(
      kept, [least](const Weighted& token) { return token.weight == 0 || token.weight < least; });

  double total = 0;
  for (const Weighted& token : kept) total += static_cast<double>(token.weight);
  std::vector<WeightedToken> tokens;
  tokens.reserve(kept.size());
  for (const Weighted& token : kept)
    tokens.push_back({token.id, static_cast<double>(token.weight) / total});
  return tokens;
}

TokenId draw(std::span<const WeightedToken> tokens, const Random& random, RandomUse use,
             int64_t position) {
  MEDUSA_ASSERT(!tokens.empty());
  RaceLeader leader{tokens[0].id};
  for (const WeightedToken& token : tokens)
    leader.meet(token.id, token.probability,
                random.uniform(use, position, static_cast<uint64_t>(token.id)));
  return leader.token;
}

TokenId sample(std::span<const float> logits, const SamplingConfig& config, const Random& random,
               RandomUse use, int64_t position) {
  if (config.filters()) return draw(target_distribution(logits, config), random, use, position);
  MEDUSA_ASSERT(config.temperature > 0, config.temperature);
  thread_local std::vector<float> weights;
  weights.resize(logits.size());
  const double sum =
      row_exp(logits, finite_max(logits), static_cast<float>(1 / config.temperature), weights);
  if (!std::isfinite(sum)) refuse_logits();  // a NaN would win the race
  return exponential_race(weights, argmax(logits), random, use, position);
}

std::span<const float> logits_row(const at::Tensor& logits, int64_t row) {
  MEDUSA_ASSERT(logits.is_cpu() && logits.scalar_type() == at::kFloat && logits.stride(1) == 1);
  return {static_cast<const float*>(logits.const_data_ptr()) + row * logits.stride(0),
          static_cast<size_t>(logits.size(1))};
}

}  // namespace medusa
