// What the heads draft below one root, depth by depth.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "heads/heads_runner.h"

namespace medusa {

/// One head's drafts after each of some paths.
class NextDrafts {
 public:
  /// @param drafts  kept by reference: one position for each path, or one for all of them.
  NextDrafts(const HeadDrafts& drafts, int64_t head, bool same_for_all)
      : drafts_(drafts), head_(head), same_for_all_(same_for_all) {}

  TokenId token(int64_t path, int64_t rank) const {
    return drafts_.token(same_for_all_ ? 0 : path, head_, rank);
  }
  float log_prob(int64_t path, int64_t rank) const {
    return drafts_.log_prob(same_for_all_ ? 0 : path, head_, rank);
  }
  int64_t top_k() const { return drafts_.top_k; }

 private:
  const HeadDrafts& drafts_;
  int64_t head_;
  bool same_for_all_;
};

/// Whoever drafts calls it in the same way whatever the heads read: heads that read only state and
/// root have drafted once and for all paths when this is made; sequential ones draft a depth at a
/// time, all paths together. Corrected ones have computed by then what all paths share, and correct
/// it a depth at a time.
class PathDrafts {
 public:
  /// @param runner     kept by reference; not run for anything else while this is used.
  /// @param hidden     [H] state at the token before the root.
  /// @param num_heads  heads that will be run at most, 1 to all.
  PathDrafts(HeadsRunner& runner, const at::Tensor& hidden, TokenId root, int64_t num_heads);

  /// Head `depth`'s drafts.
  /// @param paths  [M, depth] tokens below the root, path after path; at depth 0 there is one,
  ///               empty.
  /// @returns      valid until the next call.
  NextDrafts after(std::span<const TokenId> paths, int64_t depth);

 private:
  HeadsRunner& runner_;
  at::Tensor hidden_;  // [1, H]
  TokenId root_;
  const HeadDrafts* all_ = nullptr;  // of every head; of head 0 if corrected; null: sequential
  std::vector<TokenId> rows_;        // scratch: [M, 1 + depth] the root before each path, or the
                                     // [M] last tokens
};

}  // namespace medusa
