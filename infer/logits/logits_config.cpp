#include "infer/logits/logits_config.h"

#include <cstdint>
#include <utility>

namespace medusa {

std::vector<LogitsProcessorFactory> make_processors(const LogitsConfig& config,
                                                    const std::vector<TokenId>& ends) {
  std::vector<LogitsProcessorFactory> out;
  if (config.penalties.changes())
    out.emplace_back(
        [penalties = config.penalties] { return std::make_unique<Penalties>(penalties); });
  if (!config.bias.empty())
    out.emplace_back([bias = config.bias] { return std::make_unique<LogitBias>(bias); });
  if (!config.allowed.empty())
    out.emplace_back(
        [allowed = config.allowed] { return std::make_unique<AllowedTokens>(allowed); });
  if (!config.banned.empty())
    out.emplace_back(
        [banned = config.banned] { return std::make_unique<BannedTokens>(banned, INT64_MAX); });
  if (config.min_tokens > 0 && !ends.empty())
    out.emplace_back(
        [ends, until = config.min_tokens] { return std::make_unique<BannedTokens>(ends, until); });
  return out;
}

}  // namespace medusa
