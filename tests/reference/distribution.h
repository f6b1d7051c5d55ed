// Temperature, top-k, top-p and min-p by sorting everything in double: the slow twin of
// infer/sampling.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "base/token.h"
#include "infer/sampling.h"

namespace medusa::reference {

struct Distribution {
  std::map<TokenId, double> probabilities;  // of the tokens that are kept
  double margin = 1;  // how far top-p and min-p are from keeping one token more or less
};

inline Distribution distribution(std::span<const float> logits, const SamplingConfig& config) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](TokenId id) { return logits[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](TokenId a, TokenId b) { return logit(a) > logit(b); });
  if (config.top_k > 0 && order.size() > static_cast<size_t>(config.top_k))
    order.resize(static_cast<size_t>(config.top_k));

  const auto weight = [&](TokenId id) {
    return std::exp((static_cast<double>(logit(id)) - static_cast<double>(logit(order[0]))) /
                    config.temperature);
  };
  double sum = 0;
  for (const TokenId id : order) sum += weight(id);
  Distribution out;
  double reached = 0;
  for (const TokenId id : order) {
    if (config.top_p < 1) {
      if (reached > 0)  // the first token is always kept
        out.margin = std::min(out.margin, std::abs(reached / sum - config.top_p));
      if (reached >= config.top_p * sum) break;
    }
    out.probabilities[id] = weight(id);
    reached += weight(id);
  }
  for (const auto& [id, p] : out.probabilities)
    if (config.min_p > 0) out.margin = std::min(out.margin, std::abs(p - config.min_p));
  std::erase_if(out.probabilities, [&](const auto& each) { return each.second < config.min_p; });
  double kept = 0;
  for (const auto& [id, p] : out.probabilities) kept += p;
  for (auto& [id, p] : out.probabilities) p /= kept;
  return out;
}

}  // namespace medusa::reference
