// Whether two models speak of the same tokens: what a draft model must do.
#pragma once

#include <string>

#include "data/tokenizer/tokenizer.h"

namespace medusa {

/// Compares every token's bytes and whether it is special.
/// @param target, draft        the tokenizers
/// @param target_name, draft_name  what messages call their models
/// @throws UserError  names the first token that differs.
void check_same_tokenizer(const Tokenizer& target, const std::string& target_name,
                          const Tokenizer& draft, const std::string& draft_name);

}  // namespace medusa
