#include "train/head_trainer.h"

#include <ATen/ATen.h>

#include "train/processes/group_sums.h"

namespace medusa {

HeadTrainer::HeadTrainer(const TrainConfig& config, MedusaHeads& heads, const Weights& backbone,
                         ProcessGroup* group)
    : config_(config),
      group_(group),
      parameters_(named_parameters(heads)),
      pass_(config, heads),
      optimizer_(parameters_) {
  if (heads.outputs.empty()) output_.weight = shared_output(heads, backbone);
}

StepOutcome HeadTrainer::step(std::span<const Batch> batches, double learning_rate) {
  StepOutcome report;
  std::vector<int64_t> num_labels = label_counts(batches);
  sum_counts(group_, num_labels);
  const std::vector<double> scales = head_scales(config_, num_labels);
  report.heads.resize(scales.size());
  for (const Batch& batch : batches)
    if (batch.size() > 0) pass_.accumulate(batch, output_, scales, report.heads);
  sum_gradients(group_, parameters_);
  sum_losses(group_, report.heads);
  report.loss = weighted_loss(config_, report.heads);
  report.gradient_norm =
      optimizer_.step(learning_rate, config_.optimizer.weight_decay, config_.optimizer.clip_norm);
  return report;
}

}  // namespace medusa
