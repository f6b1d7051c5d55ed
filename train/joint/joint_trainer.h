// One optimizer step on backbone and heads together (Medusa-2, arXiv:2401.10774 §2.2.2):
//   L = L_0 + lambda_0 s(step) sum over heads k of lambda_decay^k CE_k.
// Every mean is over the answers' positions alone: what a prompt says is nobody's draft. The
// authors' code divides L_0's KL by all positions and the heads' losses by those of the answers, so
// that lambda_0 depends there on how long the prompts are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "data/dataset/dataset_reader.h"
#include "train/adamw.h"
#include "train/head_pass.h"
#include "train/joint/joint_config.h"
#include "train/joint/tuned_llama.h"
#include "train/processes/process_group.h"
#include "train/samples/batch.h"
#include "train/samples/sample_batches.h"
#include "train/samples/shuffle_buffer.h"

namespace medusa {

/// What a step is told.
struct JointStep {
  int64_t index = 0;         // addresses the dropout
  double heads_weight = 0;   // lambda_0 s(step)
  double learning_rate = 0;  // of the backbone
};

struct JointReport {
  double backbone_loss = 0;     // L_0, mean over answer tokens, nats
  std::vector<HeadLoss> heads;  // [K]
  double loss = 0;              // L, nats
  double gradient_norm = 0;     // before clipping
};

/// Thread safety: none.
class JointTrainer {
 public:
  /// All must outlive the trainer; heads and llama are trained in place.
  /// @param group  the processes that make each step together with this one; null: none.
  JointTrainer(const SharedTrainConfig& config, const JointConfig& joint,
               const DatasetReader& dataset, MedusaHeads& heads, TunedLlama& llama,
               ProcessGroup* group = nullptr);

  /// Gradients of all batches together, then one update, whose means are over the labels of all of
  /// them. If the gradient is not finite, nothing is updated. Of several processes each takes every
  /// so-manieth of the batches, which all are given.
  JointReport step(std::span<const SampleBatch> batches, const JointStep& step);

  /// Adds the heads' losses against the text, without training.
  void measure(const SampleBatch& batch, std::vector<HeadLoss>& heads);

  AdamW& optimizer() { return optimizer_; }
  NamedTensors parameters() const;  // of both, the optimizer's

 private:
  /// A batch before the student has seen it.
  struct Prepared {
    PackedTexts texts;
    at::Tensor answer_rows;       // [P] of texts: the states before answer tokens
    at::Tensor teacher;           // [P, H] these states by the backbone as it was
    std::vector<int32_t> tokens;  // [P] the answer tokens
    Batch batch;                  // of n positions; its states are to be filled in
    at::Tensor head_rows;         // [n] of the P
    std::optional<Random> dropout;
  };
  /// The LM head as it is in this step, and where its gradients go.
  struct Output {
    at::Tensor graph;        // [V, H] with autograd
    HeadOutputWeight whole;  // for L_0
    HeadOutputWeight heads;  // its kept rows
  };

  Prepared prepare(const SampleBatch& batch, const BatchRecipe& recipe) const;
  Output open_output() const;
  void close_output(const Output& output) const;
  double accumulate(const Prepared& prepared, const Output& output, int64_t num_positions,
                    std::span<const double> scales, JointReport& report);
  double backbone_loss(const Prepared& prepared, const Output& output, const at::Tensor& states,
                       double scale, const at::Tensor& gradient) const;

  const SharedTrainConfig& config_;
  const JointConfig& joint_;
  const DatasetReader& dataset_;
  MedusaHeads& heads_;
  TunedLlama& llama_;
  ProcessGroup* group_;
  std::vector<int32_t> label_rows_;
  BatchRecipe recipe_;  // of the backbone as it was: its distribution is the heads' soft label
  at::Tensor kept_;     // [V_t] int64, rows of the LM head that the heads can draft; undefined: all
  HeadPass pass_;
  AdamW optimizer_;
};

}  // namespace medusa
