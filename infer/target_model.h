// What the decoder needs of the backbone: several sequences, each with committed and tentative
// rows.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backbone/kv_cache.h"
#include "infer/candidate_tree.h"

namespace medusa {

class ThreadPool;

/// The target's answer for one tree. Views: valid until the next forward().
struct TargetOutput {
  at::Tensor logits;  // [N, V] float32 on the target's device, row i: the prediction after node i;
                      // TargetLogits brings single rows to the host
  at::Tensor hidden;  // [N, H] state at node i, after the final norm, before the LM head; in the
                      // target's dtype, on its device
  at::Tensor features{};  // [N, F, H] float32 on the target's device: the residual stream before
                          // the layers that the tree asks for; undefined where it asks for none
};

/// One sequence's part of a pass.
struct SlotTree {
  int32_t slot = 0;
  const CandidateTree* tree = nullptr;
  std::span<const int32_t> feature_layers{};  // [F] ascending (backbone/llama_backend.h: Features)
};

/// The next tokens of a sequence's prompt.
struct PromptChunk {
  int32_t slot = 0;
  std::span<const TokenId> tokens;            // at least one
  bool wants_logits = false;                  // of every row: an LM head's work for each of them
  std::span<const int32_t> feature_layers{};  // as a tree's
};

/// The answers to a pass of trees and chunks of prompts.
struct PassOutput {
  std::vector<TargetOutput> trees;          // in the order of the trees
  std::vector<at::Tensor> prompt_states;    // [H] each, of a chunk's last token: copies
  std::vector<at::Tensor> prompt_logits;    // of each chunk that wants them [n, V] float32 on the
                                            // CPU, row i: what follows its token i; else undefined.
                                            // Views: valid until the next forward()
  std::vector<at::Tensor> prompt_features;  // of each chunk that asks for them [n, F, H], as a
                                            // tree's; else undefined
};

/// Rows appended by forward() are tentative until commit(). The root of a tree is never in the
/// cache before forward().
///
/// Thread safety: none.
class TargetModel {
 public:
  virtual ~TargetModel() = default;

  virtual int32_t num_free_slots() const = 0;

  /// Says whether a sequence of so many rows at most can be opened now.
  virtual bool has_room(int64_t /*rows*/) const { return num_free_slots() > 0; }

  /// Takes a slot for a new sequence.
  /// @param rows  most that it will have, committed and tentative together; there is room for them.
  virtual int32_t open(int64_t rows) = 0;
  int32_t open() { return open(max_rows()); }

  virtual void close(int32_t slot) = 0;  // gives it back, with its rows
  virtual int64_t max_rows() const = 0;  // of one slot, committed and tentative together

  /// Gives the rows of all sequences together.
  virtual int64_t total_rows() const { return std::numeric_limits<int64_t>::max(); }

  /// Tells what its cache holds now, if it has one.
  virtual KvUse cache_use() const { return {}; }

  /// True: a row's results are the same bits whatever rows run beside it.
  virtual bool rows_are_independent() const { return true; }

  /// Lets an empty slot begin with rows that the cache holds for the same tokens, where that gives
  /// the same bits as running them.
  /// @returns  rows that the slot now has; fewer than tokens, since the last one's state is needed.
  virtual int64_t reuse_prefix(int32_t /*slot*/, std::span<const TokenId> /*tokens*/) { return 0; }

  /// Runs all trees and chunks as one pass and commits the chunks' rows; drops tentative rows left
  /// by a failed step. A slot has a tree or a chunk, not both.
  virtual PassOutput forward(std::span<const SlotTree> trees,
                             std::span<const PromptChunk> chunks) = 0;

  /// Keeps these rows of the slot's last tree (node indices, ascending), drops its others.
  virtual void commit(int32_t slot, std::span<const int32_t> nodes) = 0;

  /// Threads that are free between passes, for the decoder's own work. Null: none.
  virtual ThreadPool* idle_threads() const { return nullptr; }

  /// Trees alone.
  std::vector<TargetOutput> forward(std::span<const SlotTree> trees) {
    return forward(trees, {}).trees;
  }

  /// Runs and commits a whole prompt by itself. @returns [H], a copy of the last token's state.
  at::Tensor prefill(int32_t slot, std::span<const TokenId> tokens);
};

}  // namespace medusa
