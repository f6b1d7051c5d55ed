#include "infer/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "infer/gumbel_max.h"
#include "infer/row_math.h"

namespace medusa {
namespace {

bool more_probable(const Weighted& a, const Weighted& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

/// The k most probable of some tokens, sorted.
void keep_largest(std::vector<Weighted>& tokens, size_t k) {
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(k, tokens.size()));
  std::partial_sort(tokens.begin(), end, tokens.end(), more_probable);
  tokens.erase(end, tokens.end());
}

/// Tokens of at least some weight, by id: the most probable ones, as few as a quick search finds
/// that are enough.
/// @param least  weight of which tokens are enough in any case.
template <typename Enough>
std::vector<Weighted> most_probable(const RowWeights& row, float least, const Enough& enough) {
  constexpr float kStep = 1.0F / 16;
  std::vector<Weighted> tokens;
  for (float floor = kStep;; floor *= kStep) {
    row.collect(std::max(floor, least), tokens);
    if (floor <= least || enough(tokens)) return tokens;
  }
}

/// The least weight of a token that can come.
constexpr float kAnyWeight = std::numeric_limits<float>::min();

/// All tokens that can be among the k most probable.
std::vector<Weighted> top_k_candidates(const RowWeights& row, size_t k) {
  return most_probable(row, kAnyWeight, [k](const auto& tokens) { return tokens.size() >= k; });
}

/// All tokens that can belong to the nucleus. Those below (1 - p) / V together weigh less than
/// 1 - p, so the smallest set that reaches p needs none of them.
std::vector<Weighted> nucleus_candidates(const RowWeights& row, double top_p) {
  const double least = (1 - top_p) * row.sum() / static_cast<double>(row.all().size());
  return most_probable(row, std::max(static_cast<float>(least), kAnyWeight),
                       [&](const std::vector<Weighted>& tokens) {
                         double reached = 0;
                         for (const Weighted& each : tokens)
                           reached += static_cast<double>(each.weight);
                         return reached > (1 + 1e-9) * top_p * row.sum();  // in any order
                       });
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

void refuse_logits() {
  throw UserError(
      "the model: gives logits that are not finite, expected numbers; get its file again, as its "
      "weights may be damaged, or try --dtype float32");
}

double bounded_temperature(double temperature) {
  MEDUSA_ASSERT(temperature > 0, temperature);
  constexpr double kLowest = 0x1p-126, kHighest = 0x1p126;  // both are floats, inverted or not
  return std::clamp(temperature, kLowest, kHighest);
}

float inverse_temperature(double temperature) {
  return static_cast<float>(1 / bounded_temperature(temperature));
}

TokenId argmax(std::span<const float> logits) {
  const RowPeak peak = row_peak(logits);
  if (!std::isfinite(peak.value)) refuse_logits();
  return static_cast<TokenId>(peak.place);
}

LogProbabilities::LogProbabilities(std::span<const float> logits) : logits_(logits) {
  const SoftmaxSums sums = softmax_sums(logits, 1);
  max_ = sums.max;
  log_sum_ = sums.log_sum();
}

double log_probability(std::span<const float> logits, TokenId token) {
  return LogProbabilities(logits).of(token);
}

std::vector<TokenId> largest_tokens(std::span<const float> logits, int64_t count) {
  MEDUSA_ASSERT(count >= 1, count);
  std::vector<Weighted> heap;  // its front is the least of those kept
  for (size_t i = 0; i < logits.size(); ++i) {
    const Weighted token{logits[i], static_cast<TokenId>(i)};
    if (std::ssize(heap) == count) {
      if (!more_probable(token, heap.front())) continue;
      std::pop_heap(heap.begin(), heap.end(), more_probable);
      heap.back() = token;
    } else {
      heap.push_back(token);
    }
    std::push_heap(heap.begin(), heap.end(), more_probable);
  }
  std::sort_heap(heap.begin(), heap.end(), more_probable);
  std::vector<TokenId> ids;
  for (const Weighted& token : heap) ids.push_back(token.id);
  return ids;
}

std::vector<WeightedToken> target_distribution(std::span<const float> logits,
                                               const SamplingConfig& config, ThreadPool* threads) {
  thread_local RowWeights row;
  row.set(logits, inverse_temperature(config.temperature), threads);
  if (!std::isfinite(row.max()) || !std::isfinite(row.sum())) refuse_logits();

  std::vector<Weighted> kept;
  if (config.top_k > 0) {
    kept = top_k_candidates(row, static_cast<size_t>(config.top_k));
    keep_largest(kept, static_cast<size_t>(config.top_k));
    double sum = 0;
    for (const Weighted& token : kept) sum += static_cast<double>(token.weight);
    if (config.top_p < 1) kept = nucleus(std::move(kept), sum, config.top_p);
  } else if (config.top_p < 1) {
    kept = nucleus(nucleus_candidates(row, config.top_p), row.sum(), config.top_p);
  } else {
    row.collect(std::max(static_cast<float>(config.min_p), kAnyWeight), kept);
  }
  const auto least = static_cast<float>(config.min_p);  // the most probable token weighs 1
  std::erase_if(kept, [least](const Weighted& token) { return token.weight < least; });

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
               RandomUse use, int64_t position, ThreadPool* threads) {
  if (config.filters())
    return draw(target_distribution(logits, config, threads), random, use, position);
  const RowDraw drawn = draw_from_row(logits, inverse_temperature(config.temperature), random, use,
                                      position, threads);
  if (!std::isfinite(drawn.max) || !std::isfinite(drawn.sum)) refuse_logits();
  return drawn.token;
}

std::span<const float> logits_row(const at::Tensor& logits, int64_t row) {
  MEDUSA_ASSERT(logits.is_cpu() && logits.scalar_type() == at::kFloat && logits.stride(1) == 1);
  return {static_cast<const float*>(logits.const_data_ptr()) + row * logits.stride(0),
          static_cast<size_t>(logits.size(1))};
}

}  // namespace medusa
