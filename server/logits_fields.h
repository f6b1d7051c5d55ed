// The fields of a request that change its logits.
#pragma once

#include "data/tokenizer/tokenizer.h"
#include "infer/logits/logits_config.h"
#include "server/request_fields.h"

namespace medusa {

/// Reads presence_penalty, frequency_penalty, repetition_penalty, logit_bias, min_tokens and
/// allowed_token_ids.
/// @throws ApiError  400: one of them is wrong; names it.
LogitsConfig read_logits_fields(RequestFields& fields, const Tokenizer& tokenizer);

}  // namespace medusa
