// Loss and gradients of all heads over one batch: what every kind of training has in common.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backbone/rope.h"
#include "heads/medusa_heads.h"
#include "train/loss/loss.h"
#include "train/samples/batch.h"
#include "train/train_config.h"

namespace medusa {

/// lambda_decay^k, what head k's mean loss weighs (arXiv:2401.10774 §2.2.1).
double head_lambda(const SharedTrainConfig& config, int64_t head);

/// sum over heads of lambda_decay^k * mean cross-entropy, nats.
double weighted_loss(const SharedTrainConfig& config, const std::vector<HeadLoss>& heads);

/// Thread safety: none.
class HeadPass {
 public:
  /// @param heads  float32 masters, made leaves that take gradients; must outlive the pass, as must
  ///               config.
  HeadPass(const SharedTrainConfig& config, MedusaHeads& heads);

  /// Adds a batch's gradients to those of the masters, and to those of the states that are read,
  /// batch.hidden or with a prefix layer batch.answers.hidden, where they are a leaf that takes
  /// one.
  /// @param output  [V_t, H] of heads without an own output, and where its gradient goes; ignored
  ///                otherwise.
  /// @param scales  [K] what one position's cross-entropy weighs in the loss of the step.
  /// @param heads   [K] the batch's losses are added here.
  void accumulate(const Batch& batch, const HeadOutputWeight& output,
                  std::span<const double> scales, std::vector<HeadLoss>& heads) const;

  /// Adds the losses of a batch without training on it.
  void measure(const Batch& batch, const HeadOutputWeight& output,
               std::vector<HeadLoss>& heads) const;

 private:
  at::Tensor states_of(const Batch& batch) const;
  at::Tensor head_states(int64_t head, const at::Tensor& hidden, const Batch& batch) const;
  HeadOutputWeight output_of(int64_t head, const HeadOutputWeight& shared,
                             at::ScalarType dtype) const;
  void open_gradients(int64_t head, HeadOutputWeight& weight) const;

  const SharedTrainConfig& config_;
  MedusaHeads& heads_;
  RopeTable rope_;  // of the prefix layer, if there is one
};

/// Positions of some batches that have a loss.
/// @returns  [K]
std::vector<int64_t> label_counts(std::span<const Batch> batches);

/// What one position's loss weighs so that the step's loss is the weighted sum of the heads' means
/// over all labels of its batches. A head without a label weighs nothing.
/// @param num_labels  [K] of the whole step.
/// @returns           [K]
std::vector<double> head_scales(const SharedTrainConfig& config,
                                std::span<const int64_t> num_labels);

}  // namespace medusa
