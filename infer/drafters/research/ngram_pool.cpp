#include "infer/drafters/research/ngram_pool.h"

#include <algorithm>

#include "base/check.h"

namespace medusa {

void NgramPool::add(std::span<const TokenId> ngram) {
  MEDUSA_ASSERT(ngram.size() >= 2, ngram.size());
  const auto tail = ngram.subspan(1);
  auto& list = tails_[ngram.front()];
  const auto known = std::find_if(list.begin(), list.end(), [&](const std::vector<TokenId>& each) {
    return std::equal(each.begin(), each.end(), tail.begin(), tail.end());
  });
  if (known != list.end()) {
    std::rotate(known, known + 1, list.end());  // to the end, the others keep their order
    return;
  }
  if (list.size() == per_token_) list.pop_front();
  list.emplace_back(tail.begin(), tail.end());
}

const std::deque<std::vector<TokenId>>& NgramPool::after(TokenId token) const {
  static const std::deque<std::vector<TokenId>> kNone;
  const auto found = tails_.find(token);
  return found == tails_.end() ? kNone : found->second;
}

}  // namespace medusa
