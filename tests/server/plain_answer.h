// A completion as plain decoding writes it: one token after the other, by the obvious means,
// without the decoder, its rules or the server.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/token.h"
#include "runtime/model.h"

namespace medusa::fixtures {

struct PlainAnswer {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<double> logprobs;         // of the tokens, by the model alone
  std::vector<double> prompt_logprobs;  // of the prompt's tokens but the first
  std::string reason;                   // "stop" or "length"
};

/// @param body  of /v1/completions, its prompt as token ids; n is taken as 1. A structural_tag in
/// it
///              is the grammar of the answer.
PlainAnswer plain_answer(const Model& loaded, const nlohmann::json& body);

}  // namespace medusa::fixtures
