// A model's predictions along a text that is known.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "infer/backbone_target.h"

namespace medusa {

/// A sequence that reads its next tokens from the caller. Holds a slot of the target as long as it
/// lives.
///
/// Thread safety: none.
class Follower {
 public:
  /// Runs the prompt.
  /// @param target  has a free slot; kept by reference.
  /// @param prompt  at least one token.
  Follower(BackboneTarget& target, std::span<const TokenId> prompt)
      : target_(target), slot_(target.open()), root_(prompt.back()) {
    if (prompt.size() > 1) target_.prefill(slot_, prompt.first(prompt.size() - 1));
  }
  ~Follower() { target_.close(slot_); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// Tokens that predict() may be given in one call, so that its logits are those of plain
  /// decoding: where rows depend on what runs beside them, one.
  static size_t most_at_once(const Llama& llama) { return llama.rows_are_independent() ? 32 : 1; }

  /// Reads the next n tokens.
  /// @returns  [n, V] the logits that predicted them, valid until the target's next pass.
  at::Tensor predict(std::span<const TokenId> tokens) {
    CandidateTree chain = root_only(root_);
    std::vector<int32_t> nodes{0};
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      chain.tokens.push_back(tokens[i]);
      chain.parents.push_back(nodes.back());
      nodes.push_back(nodes.back() + 1);
    }
    chain.num_verify = chain.size();
    const SlotTree tree{slot_, &chain};
    const at::Tensor logits = target_.forward({&tree, 1})[0].logits.cpu();
    target_.commit(slot_, nodes);
    root_ = tokens.back();
    return logits;
  }

 private:
  BackboneTarget& target_;
  int32_t slot_;
  TokenId root_;
};

}  // namespace medusa
