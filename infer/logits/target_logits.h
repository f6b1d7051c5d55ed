// The rows of logits that a rule reads: the target's own, or what a request's processors make of
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "infer/candidate_tree.h"
#include "infer/logits/logits_processor.h"

namespace medusa {

class ThreadPool;

/// A sequence's processors, and the rows that they have changed in the present tree. Its buffers
/// are used again in every step.
///
/// Thread safety: none.
class ProcessedRows {
 public:
  ProcessedRows() = default;  // no processors
  ProcessedRows(std::span<const LogitsProcessorFactory> factories, std::span<const TokenId> prompt);

  bool has_processors() const { return !processors_.empty(); }

  /// The text has grown by this token.
  void take(TokenId token);

  /// Forgets the rows of the tree before.
  void begin_tree() { nodes_.clear(); }

  /// The row of a node; valid until begin_tree(). Each row is processed once.
  /// @param raw  the target's own.
  /// @throws UserError  no token may follow.
  std::span<const float> row(const CandidateTree& tree, int32_t node, std::span<const float> raw);

 private:
  std::vector<std::unique_ptr<LogitsProcessor>> processors_;
  std::vector<std::vector<float>> rows_;  // [≥ nodes_] of V each, in the order of asking
  std::vector<int32_t> nodes_;            // whose rows these are, of the present tree
  std::vector<TokenId> path_;
};

/// One tree's rows by node, as a rule shall judge them. Only the rows that are asked for are
/// processed; without processors a row is the target's own memory. Of logits on a device those rows
/// alone come to the host: a tree's rows are megabytes, and a rule reads two or three of them.
///
/// Thread safety: none, where there are processors or a device.
class TargetLogits {
 public:
  /// The target's own rows: [N, V] float32.
  TargetLogits(const at::Tensor& logits);  // NOLINT(google-explicit-constructor): a tensor is one
  /// @param tree, processed  kept by reference; null: the target's own rows.
  /// @param threads          idle ones, for passes over a row; null: none.
  TargetLogits(const at::Tensor& logits, const CandidateTree& tree, ProcessedRows* processed,
               ThreadPool* threads = nullptr);

  std::span<const float> row(int32_t node) const {
    const auto size = static_cast<size_t>(row_size_);
    const std::span<const float> raw{here(node), size};
    return processed_ != nullptr ? processed_->row(*tree_, node, raw) : raw;
  }

  /// Gives the threads that a rule may use for a row; null: none.
  ThreadPool* threads() const { return threads_; }

 private:
  const float* here(int32_t node) const {
    return on_device_.defined() ? fetched(node) : data_ + node * stride_;
  }
  const float* fetched(int32_t node) const;

  const float* data_ = nullptr;
  int64_t stride_, row_size_;
  at::Tensor on_device_;                             // [N, V]; undefined: they are on the CPU
  mutable std::map<int32_t, at::Tensor> fetched_{};  // node -> [V]
  const CandidateTree* tree_ = nullptr;
  ProcessedRows* processed_ = nullptr;
  ThreadPool* threads_ = nullptr;
};

}  // namespace medusa
