#include "heads/head_statistics.h"

#include <algorithm>

#include "base/check.h"

namespace medusa {

HeadStatistics::HeadStatistics(int64_t num_heads, int64_t top_k)
    : num_heads_(num_heads), top_k_(top_k) {
  MEDUSA_ASSERT(num_heads > 0 && top_k > 0, num_heads, top_k);
}

void HeadStatistics::add_answer(std::span<const TokenId> drafts, std::span<const TokenId> answer) {
  const auto length = static_cast<int64_t>(answer.size());
  const auto drafted = static_cast<int64_t>(drafts.size()) / (num_heads_ * top_k_);
  MEDUSA_ASSERT(drafted <= length, drafted, length);
  for (int64_t i = 0; i < drafted && i + num_heads_ < length; ++i)
    for (int64_t head = 0; head < num_heads_; ++head) {
      const auto begin = drafts.begin() + (i * num_heads_ + head) * top_k_;
      const TokenId truth = answer[static_cast<size_t>(i + 1 + head)];
      const auto found = std::find(begin, begin + top_k_, truth);
      ranks_.push_back(found == begin + top_k_ ? int16_t{-1} : static_cast<int16_t>(found - begin));
    }
  if (num_positions() > answer_begins_.back()) answer_begins_.push_back(num_positions());
}

std::vector<std::vector<int64_t>> HeadStatistics::head_counts() const {
  std::vector<std::vector<int64_t>> counts(static_cast<size_t>(num_heads_),
                                           std::vector<int64_t>(static_cast<size_t>(top_k_), 0));
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i] >= 0)
      ++counts[i % static_cast<size_t>(num_heads_)][static_cast<size_t>(ranks_[i])];
  return counts;
}

int64_t HeadStatistics::path_count(const RankPath& path) const {
  MEDUSA_ASSERT(static_cast<int64_t>(path.size()) <= num_heads_, path.size(), num_heads_);
  int64_t count = 0;
  for (int64_t i = 0; i < num_positions(); ++i)
    count += std::equal(path.begin(), path.end(), ranks(i).begin()) ? 1 : 0;
  return count;
}

}  // namespace medusa
