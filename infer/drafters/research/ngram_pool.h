// N-grams by their first token, the least recently used ones forgotten.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace medusa {

class NgramPool {
 public:
  /// @param per_token  n-grams kept for each first token; at least 1.
  explicit NgramPool(size_t per_token) : per_token_(per_token) {}

  /// Makes the n-gram the most recent one of its first token.
  /// @param ngram  at least two tokens.
  void add(std::span<const TokenId> ngram);

  /// Lists what follows a token: the n-grams that begin with it, without it, the oldest first.
  const std::deque<std::vector<TokenId>>& after(TokenId token) const;

 private:
  size_t per_token_;
  std::unordered_map<TokenId, std::deque<std::vector<TokenId>>> tails_;
};

}  // namespace medusa
