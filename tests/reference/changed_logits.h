// What a request asks of its logits, computed from the whole text each time: the slow twin of
// infer/logits.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "infer/logits/logits_config.h"

namespace medusa::reference {

/// The row that predicts what follows prompt and text.
inline std::vector<float> changed_logits(const LogitsConfig& config,
                                         const std::vector<TokenId>& ends,
                                         std::span<const TokenId> prompt,
                                         std::span<const TokenId> text, std::vector<float> row) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < row.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto is_it = [id](TokenId other) { return other == id; };
    const auto in_text = std::count(text.begin(), text.end(), id);
    const bool seen = in_text > 0 || std::any_of(prompt.begin(), prompt.end(), is_it);
    const auto repetition = static_cast<float>(config.penalties.repetition);
    if (seen) row[i] = row[i] > 0 ? row[i] / repetition : row[i] * repetition;
    if (in_text > 0)
      row[i] -= static_cast<float>(config.penalties.frequency) * static_cast<float>(in_text) +
                static_cast<float>(config.penalties.presence);
    for (const auto& [other, bias] : config.bias)
      if (other == id) row[i] += bias;
    if (!config.allowed.empty() &&
        std::none_of(config.allowed.begin(), config.allowed.end(), is_it))
      row[i] = kNever;
    if (std::any_of(config.banned.begin(), config.banned.end(), is_it)) row[i] = kNever;
    if (std::ssize(text) < config.min_tokens && std::any_of(ends.begin(), ends.end(), is_it))
      row[i] = kNever;
  }
  return row;
}

}  // namespace medusa::reference
