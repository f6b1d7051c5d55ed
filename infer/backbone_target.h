// The target model over our own backbone.
#pragma once

#include <optional>
#include <vector>

#include "backbone/llama.h"
#include "infer/target_model.h"

namespace medusa {

/// TargetModel over a Llama and its KV cache.
class BackboneTarget : public TargetModel {
 public:
  /// @param llama      kept by reference; must outlive this.
  /// @param max_rows   of one sequence; at most the model's context.
  /// @param max_bytes  of the cache; none: enough for all slots with that many rows.
  BackboneTarget(Llama& llama, int32_t num_slots, int64_t max_rows,
                 std::optional<int64_t> max_bytes = std::nullopt);

  int32_t num_free_slots() const override { return cache_.num_free(); }
  bool has_room(int64_t rows) const override { return cache_.has_room(rows); }
  using TargetModel::open;
  int32_t open(int64_t rows) override { return cache_.open(rows); }
  void close(int32_t slot) override;
  int64_t max_rows() const override { return max_rows_; }
  int64_t total_rows() const override { return cache_.total_rows(); }
  KvUse cache_use() const override { return cache_.use(); }
  using TargetModel::forward;
  bool rows_are_independent() const override { return llama_.rows_are_independent(); }
  /// Prompts and answers of other sequences, also of ended ones: chat templates begin every prompt
  /// alike, and a conversation's next prompt begins with its last one and the answer.
  int64_t reuse_prefix(int32_t slot, std::span<const TokenId> tokens) override;
  PassOutput forward(std::span<const SlotTree> trees, std::span<const PromptChunk> chunks) override;
  void commit(int32_t slot, std::span<const int32_t> nodes) override;
  ThreadPool* idle_threads() const override;

  /// Runs a segment behind a slot's committed rows with some of the layers: a draft on the target
  /// itself. Its rows are tentative and the next forward() writes over them.
  /// @param layers  that run, ascending.
  /// @returns       [n - segment.first, V] float32 on the CPU; valid until the next pass.
  at::Tensor draft(const Segment& segment, std::span<const int32_t> layers);

  /// Runs a text alone, in a slot that it gives back.
  /// @returns  [n, H] bfloat16 on the CPU: the states of all its tokens.
  at::Tensor states(std::span<const TokenId> tokens);

  /// Forgets the rows of ended sequences: for whoever times the same prompt again.
  void forget_ended() { cache_.forget_ended(); }

  /// Forgets committed rows from length on: for whoever times the same step again.
  void rewind(int32_t slot, int64_t length);

  Llama& llama() const { return llama_; }
  const KvCache& cache() const { return cache_; }

 private:
  void commit(int32_t slot, std::span<const int32_t> rows, std::span<const TokenId> tokens);
  static Features wanted_features(std::span<const SlotTree> trees,
                                  std::span<const PromptChunk> chunks);
  static void add_features(std::span<const SlotTree> trees, std::span<const PromptChunk> chunks,
                           const Features& features, PassOutput& output);
  void add_logits(std::span<const SlotTree> trees, std::span<const PromptChunk> chunks,
                  const at::Tensor& hidden, PassOutput& output);

  Llama& llama_;
  KvCache cache_;
  int64_t max_rows_;
  std::vector<std::vector<TokenId>> trees_;  // [slots] tokens of the last tree
};

}  // namespace medusa
