// Medusa heads that are often right about what the tiny model writes, without training.
#pragma once

#include "heads/medusa_heads.h"
#include "runtime/model.h"

namespace medusa::fixtures {

/// Heads whose outputs are fitted to the model's own greedy text by ridge regression, from states
/// to the tokens behind them. So drafts stand where a text is like that one.
MedusaHeads fitted_heads(const Model& loaded, int64_t num_heads);

/// What the model writes after its first token, greedily and without an end.
std::vector<TokenId> own_text(const Model& loaded, int32_t num_tokens);

}  // namespace medusa::fixtures
