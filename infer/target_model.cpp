#include "infer/target_model.h"

#include <algorithm>

#include "base/check.h"

namespace medusa {

at::Tensor TargetModel::prefill(int32_t slot, std::span<const TokenId> tokens) {
  constexpr size_t kRows = 128;  // per pass: enough to be efficient, few enough for the scratch
  MEDUSA_ASSERT(!tokens.empty());
  tokens = tokens.subspan(static_cast<size_t>(reuse_prefix(slot, tokens)));
  at::Tensor last;
  while (!tokens.empty()) {
    const PromptChunk chunk{slot, tokens.first(std::min(tokens.size(), kRows))};
    last = forward({}, {&chunk, 1}).prompt_states.front();
    tokens = tokens.subspan(chunk.tokens.size());
  }
  return last;
}

}  // namespace medusa
