// What the heads draft, as plain numbers, and picking it from rows of logits. No LibTorch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"
#include "heads/top_k_drafts.h"

namespace medusa {

/// Drafts of some heads for M positions.
struct HeadDrafts {
  int64_t num_heads = 0;        // K', those that were run
  int64_t top_k = 0;            // drafts kept per head
  std::vector<TokenId> tokens;  // [M, K', top_k], best first; of equal logits the lower id first
  std::vector<float>
      log_probs;  // [M, K', top_k] under the head's softmax over the V_t it can draft

  int64_t size() const { return static_cast<int64_t>(tokens.size()) / (num_heads * top_k); }  // M
  /// @param head  from 0: the first that was run.
  TokenId token(int64_t position, int64_t head, int64_t rank) const {
    return tokens[index(position, head, rank)];
  }
  float log_prob(int64_t position, int64_t head, int64_t rank) const {
    return log_probs[index(position, head, rank)];
  }

  /// Makes room; what was there is void.
  void reshape(int64_t num_positions, int64_t heads, int64_t drafts_per_head);

 private:
  size_t index(int64_t position, int64_t head, int64_t rank) const {
    return static_cast<size_t>((position * num_heads + head) * top_k + rank);
  }
};

/// Picks the top-k drafts of single rows of logits.
///
/// Thread safety: one per thread; several may fill different rows of the same HeadDrafts.
class DraftPicker {
 public:
  /// @param token_of_row  [V_t] token of each logit, kept by reference; empty: a row is its token.
  DraftPicker(std::span<const TokenId> token_of_row, int64_t top_k)
      : token_of_row_(token_of_row), best_(static_cast<size_t>(top_k)) {}

  /// @param logits  [V_t] of head `row % K'` at position `row / K'`.
  void pick(std::span<const float> logits, int64_t row, HeadDrafts& drafts);

  /// Keeps the drafts of a row whose best logits were found elsewhere.
  /// @param best     [top_k] descending.
  /// @param log_sum  of e^logit over the whole row.
  void put(std::span<const ScoredRow> best, float log_sum, int64_t row, HeadDrafts& drafts) const;

 private:
  std::span<const TokenId> token_of_row_;
  std::vector<ScoredRow> best_;  // [top_k] scratch
};

}  // namespace medusa
