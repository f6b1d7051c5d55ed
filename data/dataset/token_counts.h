// How often each token occurs in the answers: which rows of the LM head a truncated head keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"
#include "data/dataset/dataset_reader.h"

namespace medusa {

class TokenCounts {
 public:
  /// @param vocab_size  V; ids are below it.
  explicit TokenCounts(int64_t vocab_size) : counts_(static_cast<size_t>(vocab_size), 0) {}

  void add(std::span<const TokenId> tokens);

  int64_t operator[](TokenId id) const { return counts_[static_cast<size_t>(id)]; }
  int64_t total() const { return total_; }

  /// n different ids, most frequent first, equally frequent ones by ascending id. Those of `always`
  /// are among them however rare they are.
  /// @param n  at most V, at least the number of different ids in always.
  std::vector<TokenId> most_frequent(int64_t n, std::span<const TokenId> always = {}) const;

  /// Share of all counted tokens that are among ids (different ones), 0 to 1; 0 if none was
  /// counted.
  double coverage(std::span<const TokenId> ids) const;

 private:
  std::vector<int64_t> counts_;  // [V]
  int64_t total_ = 0;
};

/// Counts the answer tokens, end tokens included, of these samples, each as often as it is named.
TokenCounts count_answer_tokens(const DatasetReader& dataset, std::span<const int64_t> samples);

}  // namespace medusa
