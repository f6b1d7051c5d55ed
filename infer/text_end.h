// When a text ends: the same in both decoding loops.
#pragma once

#include <algorithm>
#include <optional>

#include "infer/decoder.h"

namespace medusa {

/// Why the text ends with the token that was just emitted, if it does.
/// @param token       that was emitted last.
/// @param emitted     tokens so far, this one included.
/// @param num_tokens  of prompt and text together.
/// @param wanted      what emit() returned.
/// @param max_rows    of the target.
inline std::optional<FinishReason> finish_reason(const DecodeLimits& limits, TokenId token,
                                                 int64_t emitted, int64_t num_tokens, bool wanted,
                                                 int64_t max_rows) {
  if (std::find(limits.eos.begin(), limits.eos.end(), token) != limits.eos.end())
    return FinishReason::Eos;
  if (!wanted) return FinishReason::Stopped;
  if (emitted >= limits.max_new_tokens) return FinishReason::Length;
  if (num_tokens > max_rows) return FinishReason::Context;  // the next root would have no row
  return std::nullopt;
}

/// @throws UserError          the prompt is empty or longer than the target's rows.
/// @throws std::logic_error   limits below 1.
void check_request(const DecodeRequest& request, int64_t max_rows);

}  // namespace medusa
