// A token to start drafting from: one of the text's own.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "base/token.h"

namespace medusa {

/// @param text   not empty.
/// @param index  tells several drafts of one step apart.
inline TokenId random_token(std::span<const TokenId> text, const Random& random, uint64_t index) {
  const auto position = static_cast<int64_t>(text.size()) - 1;
  const double u = random.uniform(RandomUse::Draft, position, index);
  return text[static_cast<size_t>(u * static_cast<double>(text.size()))];
}

}  // namespace medusa
