// What a request asks of its logits, as plain values -> the processors that do it.
#pragma once

#include <cstdint>
#include <vector>

#include "infer/logits/penalties.h"
#include "infer/logits/token_masks.h"

namespace medusa {

struct LogitsConfig {
  PenaltyConfig penalties;
  std::vector<LogitBias::Entry> bias;
  std::vector<TokenId> allowed;  // ascending, none twice; empty: all
  std::vector<TokenId> banned;
  int32_t min_tokens = 0;  // of the text before it may end
};

/// The processors in their order: penalties, bias, then masks. Empty where nothing is asked for.
/// @param ends  tokens that end the text; min_tokens keeps them from coming.
std::vector<LogitsProcessorFactory> make_processors(const LogitsConfig& config,
                                                    const std::vector<TokenId>& ends);

}  // namespace medusa
