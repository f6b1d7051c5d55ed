#include "infer/logits/penalties.h"

#include <algorithm>

namespace medusa {

Penalties::Seen& Penalties::seen(TokenId id) {
  const auto place =
      std::lower_bound(seen_.begin(), seen_.end(), id,
                       [](const Seen& each, TokenId what) { return each.id < what; });
  if (place != seen_.end() && place->id == id) return *place;
  return *seen_.insert(place, Seen{id});
}

void Penalties::begin(std::span<const TokenId> prompt) {
  if (config_.repetition == 1) return;  // the only one that looks at the prompt
  seen_.reserve(prompt.size());
  for (const TokenId id : prompt) seen_.push_back({id, 0, true});
  const auto by_id = [](const Seen& a, const Seen& b) { return a.id < b.id; };
  const auto same_id = [](const Seen& a, const Seen& b) { return a.id == b.id; };
  std::sort(seen_.begin(), seen_.end(), by_id);
  seen_.erase(std::unique(seen_.begin(), seen_.end(), same_id), seen_.end());
}

void Penalties::take(TokenId token) { ++seen(token).in_text; }

void Penalties::process(std::span<const TokenId> path, std::span<float> row) {
  for (const TokenId id : path) ++seen(id).in_text;
  const auto presence = static_cast<float>(config_.presence);
  const auto frequency = static_cast<float>(config_.frequency);
  const auto repetition = static_cast<float>(config_.repetition);
  for (const Seen& each : seen_) {
    float& logit = row[static_cast<size_t>(each.id)];
    const bool in_text = each.in_text > 0;
    if (in_text || each.in_prompt) logit = logit > 0 ? logit / repetition : logit * repetition;
    if (in_text) logit -= frequency * static_cast<float>(each.in_text) + presence;
  }
  for (const TokenId id : path) --seen(id).in_text;  // an entry that is now of no use does no harm
}

}  // namespace medusa
