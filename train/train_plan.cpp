#include "train/train_plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "train/batch.h"

namespace medusa {
namespace {

/// The first samples that together have about so many positions.
std::vector<int64_t> first_samples(const DatasetReader& dataset,
                                   const std::vector<int64_t>& samples, int64_t most_positions) {
  std::vector<int64_t> taken;
  for (const int64_t sample : samples) {
    if (most_positions <= 0) break;
    taken.push_back(sample);
    most_positions -= std::max<int64_t>(num_positions(dataset, sample), 0);
  }
  return taken;
}

}  // namespace

TrainPlan plan_training(const TrainConfig& config, const DatasetReader& dataset) {
  const SampleSplit split =
      split_samples(Random(config.seed), dataset.size(), config.validation_fraction);
  std::vector<int64_t> samples;  // of all epochs
  if (!split.train.empty()) {
    SampleOrder order(split.train, Random(config.seed));
    for (int64_t i = 0; i < config.epochs * order.epoch_size(); ++i)
      samples.push_back(order.next());
  }
  TrainPlan plan;
  plan.accumulate = config.accumulate;
  plan.batches = plan_batches(dataset, samples, config.batch_positions);
  if (plan.batches.empty())
    throw UserError(fmt::format(
        "train: the dataset has {} samples, {} of them for training, and none with two answer "
        "tokens; expected some, distil more text or lower validation_fraction",
        dataset.size(), split.train.size()));
  plan.positions_before.push_back(0);
  for (const auto& batch : plan.batches) {
    int64_t positions = plan.positions_before.back();
    for (const int64_t sample : batch) positions += num_positions(dataset, sample);
    plan.positions_before.push_back(positions);
  }
  plan.steps_per_epoch = std::max<int64_t>(plan.num_steps() / config.epochs, 1);
  plan.validation =
      plan_batches(dataset, first_samples(dataset, split.validation, config.validation_positions),
                   config.batch_positions);
  return plan;
}

}  // namespace medusa
