// Made-up texts of few different tokens, so that runs come up again.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/token.h"

namespace medusa::fixtures {

/// @param length  tokens of the longest; the shortest has one.
inline std::vector<std::vector<TokenId>> random_texts(uint64_t seed, int64_t count, int64_t length,
                                                      int64_t vocab_size) {
  std::vector<std::vector<TokenId>> texts(static_cast<size_t>(count));
  for (size_t i = 0; i < texts.size(); ++i) {
    const Random random = Random(seed).child(i);
    const double share = count == 1 ? 1 : random.uniform(RandomUse::Init, -1);
    const auto size = 1 + static_cast<int64_t>(share * static_cast<double>(length - 1));
    for (int64_t k = 0; k < size; ++k)
      texts[i].push_back(static_cast<TokenId>(random.uniform(RandomUse::Init, k) *
                                              static_cast<double>(vocab_size)));
  }
  return texts;
}

}  // namespace medusa::fixtures
