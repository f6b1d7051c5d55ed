// Which draft of each head was right at each validation position; from this calibration counts how
// often every path of ranks is right, jointly. No LibTorch.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token.h"
#include "heads/tree/choice_tree.h"

namespace medusa {

/// Only positions with a true token for every head are kept: all paths are then counted over the
/// same positions, so a prefix is never rarer than its extension and deep heads are not
/// under-estimated by answers that end.
class HeadStatistics {
 public:
  HeadStatistics(int64_t num_heads, int64_t top_k);

  /// Adds the positions of one answer.
  /// @param drafts  [n, K, top_k] tokens drafted at position i with root answer[i]; n is at most
  ///                the answer's length.
  /// @param answer  the answer's tokens; head k's true token at position i is answer[i + 1 + k].
  void add_answer(std::span<const TokenId> drafts, std::span<const TokenId> answer);

  int64_t num_heads() const { return num_heads_; }
  int64_t top_k() const { return top_k_; }
  int64_t num_positions() const { return static_cast<int64_t>(ranks_.size()) / num_heads_; }
  int64_t num_answers() const { return static_cast<int64_t>(answer_begins_.size()) - 1; }

  /// [K] rank of the true token among each head's drafts; -1: not among them.
  std::span<const int16_t> ranks(int64_t position) const {
    return {ranks_.data() + position * num_heads_, static_cast<size_t>(num_heads_)};
  }
  /// Positions [first, second) belong to the answer.
  std::pair<int64_t, int64_t> answer(int64_t i) const {
    return {answer_begins_[static_cast<size_t>(i)], answer_begins_[static_cast<size_t>(i) + 1]};
  }

  /// [K][top_k] positions at which head k's draft of that rank was right.
  std::vector<std::vector<int64_t>> head_counts() const;

  /// Positions at which all drafts of the path were right.
  int64_t path_count(const RankPath& path) const;

 private:
  int64_t num_heads_, top_k_;
  std::vector<int16_t> ranks_;                // [positions, K]
  std::vector<int64_t> answer_begins_ = {0};  // [answers + 1]
};

}  // namespace medusa
