#include "data/dataset/token_counts.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace medusa {

void TokenCounts::add(std::span<const TokenId> tokens) {
  for (const TokenId id : tokens) {
    MEDUSA_ASSERT(id >= 0 && static_cast<size_t>(id) < counts_.size(), id, counts_.size());
    ++counts_[static_cast<size_t>(id)];
  }
  total_ += static_cast<int64_t>(tokens.size());
}

std::vector<TokenId> TokenCounts::most_frequent(int64_t n, std::span<const TokenId> always) const {
  MEDUSA_ASSERT(n >= 0 && static_cast<size_t>(n) <= counts_.size(), n, counts_.size());
  std::vector<TokenId> ids(counts_.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto more_frequent = [&](TokenId a, TokenId b) {
    const int64_t count_a = (*this)[a], count_b = (*this)[b];
    return count_a != count_b ? count_a > count_b : a < b;
  };
  std::vector<bool> wanted(counts_.size(), false);
  for (const TokenId id : always) wanted[static_cast<size_t>(id)] = true;
  std::sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    const bool wanted_a = wanted[static_cast<size_t>(a)], wanted_b = wanted[static_cast<size_t>(b)];
    return wanted_a != wanted_b ? wanted_a : more_frequent(a, b);
  });
  const auto num_wanted = std::count(wanted.begin(), wanted.end(), true);
  MEDUSA_ASSERT(num_wanted <= n, num_wanted, n);
  ids.resize(static_cast<size_t>(n));
  std::sort(ids.begin(), ids.end(), more_frequent);
  return ids;
}

double TokenCounts::coverage(std::span<const TokenId> ids) const {
  int64_t covered = 0;
  for (const TokenId id : ids) covered += (*this)[id];
  return total_ == 0 ? 0 : static_cast<double>(covered) / static_cast<double>(total_);
}

TokenCounts count_answer_tokens(const DatasetReader& dataset, std::span<const int64_t> samples) {
  TokenCounts counts(dataset.info().vocab_size);
  for (const int64_t sample : samples) counts.add(dataset.answer(sample));
  return counts;
}

}  // namespace medusa
