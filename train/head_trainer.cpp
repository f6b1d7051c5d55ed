#include "train/head_trainer.h"

#include <ATen/ATen.h>

namespace medusa {

HeadTrainer::HeadTrainer(const TrainConfig& config, MedusaHeads& heads, const Weights& backbone)
    : config_(config), pass_(config, heads), optimizer_(named_parameters(heads)) {
  if (heads.outputs.empty()) output_.weight = shared_output(heads, backbone);
}

StepReport HeadTrainer::step(std::span<const Batch> batches, double learning_rate) {
  StepReport report;
  const std::vector<double> scales = head_scales(config_, batches);
  for (const Batch& batch : batches) pass_.accumulate(batch, output_, scales, report.heads);
  report.loss = weighted_loss(config_, report.heads);
  report.gradient_norm = optimizer_.step(learning_rate, config_.weight_decay, config_.clip_norm);
  return report;
}

}  // namespace medusa
