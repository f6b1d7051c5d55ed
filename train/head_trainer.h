// Heads alone (Medusa-1): before training, where what they can draft follows from the dataset, one
// optimizer step on them, and judging them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/dataset_reader.h"
#include "heads/medusa_heads.h"
#include "train/adamw.h"
#include "train/head_pass.h"
#include "train/loss/loss.h"
#include "train/processes/process_group.h"
#include "train/samples/batch.h"
#include "train/samples/train_inputs.h"
#include "train/train_config.h"
#include "train/train_stage.h"

namespace medusa {

/// Heads before training: a truncated output keeps the most frequent tokens of the training
/// samples, each counted as often as the epochs visit it: validation must not choose what it is
/// judged by.
/// @param last_layer  of the backbone, for heads that begin as it; else ignored.
/// @throws UserError  as check_heads_fit() and begin_as_last_layer().
MedusaHeads untrained_heads(const TrainConfig& config, const HeadsConfig& heads,
                            const DatasetReader& dataset, const Weights& backbone,
                            const LayerWeights* last_layer = nullptr);

/// Heads that a run begins with: untrained ones, or copies of the earlier ones that it is given. A
/// correction that these lack is added as it is before training, so that they draft the same.
MedusaHeads first_heads(const TrainConfig& config, const HeadsConfig& heads,
                        const TrainInputs& inputs);

/// Thread safety: none.
class HeadTrainer {
 public:
  /// @param heads     float32 masters, trained in place; must outlive the trainer.
  /// @param backbone  its dtype is what is computed in.
  /// @param group     the processes that make each step together with this one; null: none.
  HeadTrainer(const TrainConfig& config, MedusaHeads& heads, const Weights& backbone,
              ProcessGroup* group = nullptr);

  /// Gradients of all batches together, then one update. The loss of head k is the mean over all
  /// labels of the step, so that batches accumulated make the same step as one large batch, and so
  /// do those of all processes. A process's batch may be empty.
  StepOutcome step(std::span<const Batch> batches, double learning_rate);

  /// Adds the losses of a batch without training on it.
  void measure(const Batch& batch, std::vector<HeadLoss>& heads) const {
    pass_.measure(batch, output_, heads);
  }

  AdamW& optimizer() { return optimizer_; }

 private:
  const TrainConfig& config_;
  ProcessGroup* group_;
  NamedTensors parameters_;
  HeadOutputWeight output_;  // frozen; undefined if each head has its own
  HeadPass pass_;
  AdamW optimizer_;
};

}  // namespace medusa
