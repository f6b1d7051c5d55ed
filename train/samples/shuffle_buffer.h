// Samples -> positions that can be taken in any order. A batch of whole samples is a few answers,
// whose positions resemble each other; one of positions drawn from a hundred answers makes a much
// better step (heads 1 to 3 are right a tenth more often after the same work,
// docs/design-notes/better-heads.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backbone/weights.h"
#include "data/dataset/dataset_reader.h"
#include "heads/medusa_heads.h"
#include "train/loss/soft_labels.h"
#include "train/samples/batch.h"
#include "train/samples/hidden_source.h"
#include "train/train_config.h"

namespace medusa {

/// How positions become batches; the same for a whole run.
struct BatchRecipe {
  const Weights& backbone;             // its embedding's dtype and device are the batches'
  int64_t num_heads = 0;               // K
  int64_t num_tokens = 0;              // E, that the last head reads
  bool whole_answers = false;          // batches hold AnswerRows
  std::span<const int32_t> label_row;  // as rows_of_tokens gives it
  double embedding_gain = 1;           // of medusa_heads.h
  at::Tensor soft_output;              // [V_t, H] for make_soft_labels; undefined: hard labels only
  int64_t soft_size = 0;               // M
  HeadObjective objective = HeadObjective::CrossEntropy;
  int64_t chunk = 0;  // states whose logits exist at one time
};

/// @param label_rows  rows_of_tokens(heads); they and the backbone must outlive the recipe.
BatchRecipe batch_recipe(const SharedTrainConfig& config, const MedusaHeads& heads,
                         const Weights& backbone, std::span<const int32_t> label_rows);

/// Positions of a sample that have a label for at least one head.
int64_t num_positions(const DatasetReader& dataset, int64_t sample);

/// All positions of some samples, in memory: 2 H + 8 M bytes for each; with whole answers 2 H
/// numbers of the compute dtype more, which all batches share.
class ShuffleBuffer {
 public:
  ShuffleBuffer(const DatasetReader& dataset, std::span<const int64_t> samples,
                const HiddenSource& hidden, const BatchRecipe& recipe);

  int64_t size() const { return static_cast<int64_t>(positions_.size()); }

  /// @param positions  in [0, size()): samples as given, each from its first position to its last.
  Batch batch(std::span<const int64_t> positions) const;

 private:
  /// Where a position lies, and how many tokens of its answer follow.
  struct Position {
    int64_t row = 0;
    int64_t behind = 0;
  };
  void add_answers();
  void add_labels(int64_t head, const Position& position, Batch& batch) const;
  at::Tensor read_tokens(std::span<const int64_t> positions) const;

  const BatchRecipe& recipe_;
  std::vector<TokenId> tokens_;  // of all answers; token i was drafted from row i of hidden_
  at::Tensor hidden_;            // [tokens, H] bfloat16 on the CPU
  SoftLabels soft_;              // of the rows of hidden_
  AnswerRows answers_;
  std::vector<Position> positions_;
};

}  // namespace medusa
