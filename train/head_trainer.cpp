#include "train/head_trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

namespace medusa {

HeadTrainer::HeadTrainer(const TrainConfig& config, MedusaHeads& heads, const Weights& backbone)
    : config_(config),
      heads_(heads),
      dtype_(backbone.lm_head.scalar_type()),
      optimizer_(named_parameters(heads)) {
  if (heads.outputs.empty()) shared_output_ = shared_output(heads, backbone);
  for (HeadBlock& block : heads.blocks)
    for (at::Tensor* tensor : {&block.weight, &block.bias, &block.second})
      if (tensor->defined()) tensor->set_requires_grad(true);
}

double HeadTrainer::lambda(int64_t head) const {
  return std::pow(config_.lambda_decay, static_cast<double>(head));
}

double HeadTrainer::weighted(const std::vector<HeadLoss>& heads) const {
  double sum = 0;
  for (size_t k = 0; k < heads.size(); ++k)
    sum += lambda(static_cast<int64_t>(k)) * heads[k].quality().loss;
  return sum;
}

HeadOutputWeight HeadTrainer::output_of(int64_t head) const {
  if (shared_output_.defined()) return {shared_output_, {}};
  const at::Tensor& master = heads_.outputs[static_cast<size_t>(head)];
  return {master.to(dtype_), {}};
}

HeadLoss HeadTrainer::train_head(const Batch& batch, int64_t head, const HeadOutputWeight& output,
                                 double scale) const {
  const c10::AutoGradMode grad(true);
  const at::Tensor states = head_state(heads_, head, batch.hidden, batch.embeddings);  // [n, H]
  const at::Tensor gradient = at::empty_like(states, states.options().requires_grad(false));
  HeadLoss loss;
  {
    const c10::NoGradGuard no_grad;
    loss = head_loss(states.detach(), output, batch.labels_of(head), scale, config_.chunk_positions,
                     gradient);
  }
  states.backward(gradient);
  return loss;
}

StepReport HeadTrainer::step(std::span<const Batch> batches, double learning_rate) {
  StepReport report;
  report.heads.resize(static_cast<size_t>(heads_.config.num_heads));
  for (int64_t head = 0; head < heads_.config.num_heads; ++head) {
    int64_t num_labels = 0;
    for (const Batch& batch : batches) num_labels += batch.labels_of(head).num_with_loss();
    if (num_labels == 0) continue;
    HeadOutputWeight output = output_of(head);
    if (!heads_.outputs.empty()) {
      at::Tensor master = heads_.outputs[static_cast<size_t>(head)];
      output.gradient = at::zeros_like(master);
      master.mutable_grad() = output.gradient;
    }
    const double scale = lambda(head) / static_cast<double>(num_labels);
    for (const Batch& batch : batches)
      report.heads[static_cast<size_t>(head)].add(train_head(batch, head, output, scale));
  }
  report.loss = weighted(report.heads);
  report.gradient_norm = optimizer_.step(learning_rate, config_.weight_decay, config_.clip_norm);
  return report;
}

void HeadTrainer::measure(const Batch& batch, std::vector<HeadLoss>& heads) const {
  const c10::NoGradGuard no_grad;
  heads.resize(static_cast<size_t>(heads_.config.num_heads));
  for (int64_t head = 0; head < heads_.config.num_heads; ++head) {
    const at::Tensor states = head_state(heads_, head, batch.hidden, batch.embeddings);
    heads[static_cast<size_t>(head)].add(head_loss(states, output_of(head), batch.labels_of(head),
                                                   /*scale=*/0, config_.chunk_positions, {}));
  }
}

}  // namespace medusa
