#include "infer/draft_models/draft_choice.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace medusa {
namespace {

struct Racer {
  double time;
  WeightedToken token;
};

/// The count first of a race in which token i arrives after -log(u_i) / p_i: draw() for several.
std::vector<WeightedToken> race(std::span<const WeightedToken> tokens, int32_t count,
                                const Random& random, RandomUse use, int64_t position) {
  if (count == 1) {  // much cheaper: most tokens cannot win
    const TokenId winner = draw(tokens, random, use, position);
    return {*std::find_if(tokens.begin(), tokens.end(),
                          [winner](const WeightedToken& token) { return token.id == winner; })};
  }
  std::vector<Racer> racers;
  racers.reserve(tokens.size());
  for (const WeightedToken& token : tokens) {
    const double u = random.uniform(use, position, static_cast<uint64_t>(token.id));
    racers.push_back({-std::log(std::max(u, 0x1.0p-60)) / token.probability, token});
  }
  const auto first = racers.begin() + std::min<std::ptrdiff_t>(count, std::ssize(racers));
  std::partial_sort(racers.begin(), first, racers.end(),
                    [](const Racer& a, const Racer& b) { return a.time < b.time; });
  std::vector<WeightedToken> out;
  for (auto each = racers.begin(); each != first; ++each) out.push_back(each->token);
  return out;
}

/// For each chosen token the distribution without those chosen before it.
void append_rows(std::span<const WeightedToken> tokens, std::span<const WeightedToken> chosen,
                 size_t vocab_size, std::vector<float>& rows) {
  double left = 1;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const size_t at = rows.size();
    rows.resize(at + vocab_size, 0.0F);
    for (const WeightedToken& token : tokens)
      rows[at + static_cast<size_t>(token.id)] = static_cast<float>(token.probability / left);
    for (size_t before = 0; before < i; ++before)
      rows[at + static_cast<size_t>(chosen[before].id)] = 0;
    left = std::max(left - chosen[i].probability, 1e-12);
  }
}

}  // namespace

DraftChoice::DraftChoice(DraftMode mode, const SamplingConfig& sampling)
    : mode_(mode), sampling_(sampling) {
  MEDUSA_ASSERT(mode == DraftMode::Best || sampling.temperature > 0, sampling.temperature);
}

std::vector<DraftedToken> DraftChoice::choose(std::span<const float> logits, int32_t count,
                                              const Random& random, int64_t position,
                                              std::vector<float>* probabilities) const {
  std::vector<DraftedToken> out;
  if (mode_ == DraftMode::Best) {
    const std::vector<TokenId> best = largest_tokens(logits, count);
    const float top = logits[static_cast<size_t>(best[0])];
    const double first = log_probability(logits, best[0]);
    for (const TokenId token : best) {
      const double below = static_cast<double>(logits[static_cast<size_t>(token)] - top);
      out.push_back({token, std::exp(first + below)});
    }
    return out;
  }
  const std::vector<WeightedToken> tokens = target_distribution(logits, sampling_);
  const RandomUse use = mode_ == DraftMode::Coupled ? RandomUse::Accept : RandomUse::Draft;
  const std::vector<WeightedToken> chosen = race(tokens, count, random, use, position);
  for (const WeightedToken& token : chosen) out.push_back({token.id, token.probability});
  if (probabilities != nullptr && mode_ == DraftMode::Drawn)
    append_rows(tokens, chosen, logits.size(), *probabilities);
  return out;
}

}  // namespace medusa
