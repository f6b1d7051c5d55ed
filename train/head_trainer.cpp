#include "train/head_trainer.h"

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/interrupt.h"
#include "data/dataset/sample_order.h"
#include "data/dataset/token_counts.h"
#include "train/processes/data_parallel.h"

namespace medusa {

MedusaHeads untrained_heads(const TrainConfig& config, const HeadsConfig& heads,
                            const DatasetReader& dataset, const Weights& backbone,
                            const LayerWeights* last_layer) {
  check_heads_fit(heads, backbone.config);
  std::vector<TokenId> kept;
  if (is_truncated(heads.output)) {
    const Random random(config.seed);
    const SampleSplit split = split_dataset(random, dataset, config.validation_fraction);
    std::vector<int64_t> visits;
    for (int64_t epoch = 0; epoch < config.optimizer.epochs; ++epoch) {
      stop_if_interrupted();
      for (const int64_t sample : samples_of_epoch(random, dataset, split.train, epoch))
        visits.push_back(sample);
    }
    kept = count_answer_tokens(dataset, visits).most_frequent(heads.output_size);
  }
  MedusaHeads made = make_heads(heads, backbone, std::move(kept), config.seed);
  if (heads.start == HeadStart::LastLayer) {
    MEDUSA_ASSERT(last_layer != nullptr);
    begin_as_last_layer(made.prefix.value(), backbone.config, *last_layer, backbone.final_norm);
  }
  return made;
}

MedusaHeads first_heads(const TrainConfig& config, const HeadsConfig& heads,
                        const TrainInputs& inputs) {
  if (inputs.earlier == nullptr)
    return untrained_heads(config, heads, inputs.dataset, inputs.backbone, inputs.last_layer);
  const MedusaHeads& earlier = inputs.earlier->heads;
  MedusaHeads made = make_heads(heads, inputs.backbone, earlier.kept_tokens, config.seed);
  std::map<std::string, at::Tensor> known;
  for (const auto& [name, tensor] : named_parameters(earlier)) known.emplace(name, tensor);
  for (const auto& [name, tensor] : named_parameters(made))
    if (const auto found = known.find(name); found != known.end())
      at::Tensor(tensor).copy_(found->second);
  if (earlier.prefix) {  // what of it is not trained
    made.prefix->scale = earlier.prefix->scale;
    made.prefix->final_norm = earlier.prefix->final_norm;
  }
  return made;
}

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
