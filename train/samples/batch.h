// What one optimizer step sees: states, the tokens that heads read, and the labels of every head.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "train/train_config.h"

namespace medusa {

constexpr int32_t kNoLabel = -1;       // the text ends before: neither loss nor accuracy
constexpr int32_t kLabelNotKept = -2;  // the output cannot draft it: a miss

/// What one head should draft at n positions. Accuracies are judged by the text's own token; the
/// loss is taken against the soft labels where there are some.
struct Labels {
  std::span<const int32_t> hard;  // [n] output row of the text's token, or one of the two above
  std::span<const int32_t> soft_rows;  // [n, M] output rows that the backbone held likely, or empty
  std::span<const float> soft_probs;   // [n, M], a position's together 1
  HeadObjective objective = HeadObjective::CrossEntropy;

  bool is_soft() const { return !soft_rows.empty(); }
  int64_t soft_size() const {  // M
    return is_soft() ? static_cast<int64_t>(soft_rows.size() / hard.size()) : 0;
  }
  /// Whether position i has a loss. A hard label that is not kept has none; the backbone's
  /// distribution over what is kept always does.
  bool has_loss(size_t i) const { return is_soft() ? hard[i] != kNoLabel : hard[i] >= 0; }

  int64_t num_with_loss() const;

  /// Of positions [first, first + count).
  Labels part(int64_t first, int64_t count) const;
};

/// Whole answers, one after the other: what a prefix layer runs over. Row i of an answer has the
/// state before its token i, which is the row's root.
struct AnswerRows {
  at::Tensor hidden;             // [m, H] compute dtype; undefined: the heads have no such layer
  at::Tensor roots;              // [m, H] compute dtype: the roots' embeddings
  std::vector<int64_t> lengths;  // of each answer, together m
};

/// Positions of some samples. Position i of an answer has root answer[i], the state before it, and
/// head k's label is answer[i + 1 + k]. Sequential heads are given the true tokens in between
/// (teacher forcing): they are trained and judged as after a right prefix.
struct Batch {
  at::Tensor hidden;               // [n, H] compute dtype
  AnswerRows answers{};            // of heads with a prefix layer, which reads these states
  std::vector<int64_t> rows{};     // [n] of answers: the batch's positions
  at::Tensor embeddings;           // [n, E, H] compute dtype: of answer[i], …, answer[i + E - 1]
  int64_t num_heads = 0;           // K
  std::vector<int32_t> labels;     // [K, n] as Labels::hard
  int64_t soft_size = 0;           // M; 0: no soft labels
  std::vector<int32_t> soft_rows;  // [K, n, M]
  std::vector<float> soft_probs;   // [K, n, M]
  HeadObjective objective = HeadObjective::CrossEntropy;

  int64_t size() const { return hidden.size(0); }  // n
  Labels labels_of(int64_t head) const;
};

}  // namespace medusa
