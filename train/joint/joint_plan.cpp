#include "train/joint/joint_plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/dataset/dataset_mix.h"
#include "train/samples/position_pool.h"

namespace medusa {

JointPlan plan_joint(const SharedTrainConfig& config, const JointConfig& joint,
                     const DatasetReader& dataset) {
  const Random random(config.seed);
  const SampleSplit split = split_dataset(random, dataset, config.validation_fraction);
  JointPlan plan;
  plan.accumulate = joint.accumulate;
  plan.batches =
      batches_of_run(random, dataset, split.train, joint.optimizer.epochs, joint.batch_tokens);
  if (plan.batches.empty())
    throw UserError(
        fmt::format("train: the dataset has {} samples, found none for training, expected some; "
                    "distil more text or lower train.validation_fraction",
                    dataset.size()));
  plan.num_steps = (std::ssize(plan.batches) + joint.accumulate - 1) / joint.accumulate;
  plan.num_steps = std::min(plan.num_steps, joint.max_steps.value_or(plan.num_steps));
  int64_t room = config.validation_positions;
  for (const int64_t sample : split.validation) {
    if (std::ssize(plan.probe) < joint.guard.samples) plan.probe.push_back(sample);
    if (room <= 0 || num_positions(dataset, sample) <= 0) continue;
    plan.validation.push_back({{sample}, std::ssize(dataset.answer(sample))});
    room -= num_positions(dataset, sample);
  }
  return plan;
}

}  // namespace medusa
