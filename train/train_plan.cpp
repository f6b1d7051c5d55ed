#include "train/train_plan.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/dataset/sample_order.h"
#include "train/samples/shuffle_buffer.h"

namespace medusa {
namespace {

/// The first samples that together have about so many positions.
std::vector<int64_t> first_samples(const DatasetReader& dataset,
                                   const std::vector<int64_t>& samples, int64_t most_positions) {
  std::vector<int64_t> taken;
  for (const int64_t sample : samples) {
    if (most_positions <= 0) break;
    const int64_t n = num_positions(dataset, sample);
    if (n > 0) taken.push_back(sample);
    most_positions -= std::max<int64_t>(n, 0);
  }
  return taken;
}

/// Cuts one epoch's samples into pools of about so many positions; leaves out those without one.
std::vector<std::vector<int64_t>> cut_into_pools(const DatasetReader& dataset,
                                                 const std::vector<int64_t>& samples,
                                                 int64_t pool_positions) {
  std::vector<std::vector<int64_t>> pools;
  int64_t room = 0;  // positions that the last pool may still take
  for (const int64_t sample : samples) {
    const int64_t n = num_positions(dataset, sample);
    if (n <= 0) continue;
    if (room <= 0) {
      pools.emplace_back();
      room = pool_positions;
    }
    pools.back().push_back(sample);
    room -= n;
  }
  return pools;
}

void add_batches(const DatasetReader& dataset, int64_t pool, int64_t batch_positions,
                 TrainPlan& plan) {
  int64_t size = 0;
  for (const int64_t sample : plan.pools[static_cast<size_t>(pool)])
    size += num_positions(dataset, sample);
  const int64_t count = (size + batch_positions - 1) / batch_positions;
  for (int64_t i = 0; i < count; ++i) {
    const PlannedBatch batch{pool, size * i / count, size * (i + 1) / count};
    plan.batches.push_back(batch);
    plan.positions_before.push_back(plan.positions_before.back() + batch.end - batch.begin);
  }
}

[[noreturn]] void fail_empty(const DatasetReader& dataset, const SampleSplit& split,
                             int64_t epochs) {
  const auto useful = std::count_if(split.train.begin(), split.train.end(), [&](int64_t sample) {
    return num_positions(dataset, sample) > 0;
  });
  if (useful > 0)
    throw UserError(fmt::format(
        "train.data_weights: found weights by which none of {} samples has its turn in {} epochs, "
        "expected a turn for some; raise the weights, or train.epochs",
        useful, epochs));
  throw UserError(fmt::format(
      "train: the dataset has {} samples, {} of them for training, and none with two answer "
      "tokens, expected some; distil more text, or longer answers with a larger "
      "distill.max_new_tokens, or lower train.validation_fraction",
      dataset.size(), split.train.size()));
}

}  // namespace

TrainPlan plan_training(const TrainConfig& config, const DatasetReader& dataset) {
  const Random random(config.seed);
  const SampleSplit split = split_dataset(random, dataset, config.validation_fraction);
  TrainPlan plan;
  plan.accumulate = config.accumulate;
  plan.positions_before.push_back(0);
  for (int64_t epoch = 0; epoch < config.optimizer.epochs; ++epoch) {
    stop_if_interrupted();
    for (auto& pool : cut_into_pools(dataset, samples_of_epoch(random, dataset, split.train, epoch),
                                     config.shuffle_positions)) {
      plan.pools.push_back(std::move(pool));
      add_batches(dataset, static_cast<int64_t>(plan.pools.size()) - 1, config.batch_positions,
                  plan);
    }
  }
  if (plan.batches.empty()) fail_empty(dataset, split, config.optimizer.epochs);
  plan.steps_per_epoch = std::max<int64_t>(plan.num_steps() / config.optimizer.epochs, 1);
  plan.validation = first_samples(dataset, split.validation, config.validation_positions);
  return plan;
}

std::vector<int64_t> shuffled_positions(const Random& random, int64_t pool, int64_t size) {
  std::vector<int64_t> positions(static_cast<size_t>(size));
  std::iota(positions.begin(), positions.end(), 0);
  SampleOrder order(positions, random.child(static_cast<uint64_t>(pool)));
  for (int64_t& position : positions) position = order.next();
  return positions;
}

JointPlan plan_joint(const SharedTrainConfig& config, const JointConfig& joint,
                     const DatasetReader& dataset) {
  const Random random(config.seed);
  const SampleSplit split = split_dataset(random, dataset, config.validation_fraction);
  JointPlan plan;
  plan.accumulate = joint.accumulate;
  plan.batches =
      batches_of_run(random, dataset, split.train, joint.optimizer.epochs, joint.batch_tokens);
  if (plan.batches.empty()) fail_empty(dataset, split, joint.optimizer.epochs);
  plan.num_steps = (std::ssize(plan.batches) + joint.accumulate - 1) / joint.accumulate;
  plan.num_steps = std::min(plan.num_steps, joint.max_steps.value_or(plan.num_steps));
  int64_t room = config.validation_positions;
  for (const int64_t sample : split.validation) {
    if (std::ssize(plan.probe) < joint.guard.samples) plan.probe.push_back(sample);
    if (room <= 0 || num_positions(dataset, sample) <= 0) continue;
    plan.validation.push_back({{sample}, std::ssize(dataset.answer(sample))});
    room -= num_positions(dataset, sample);
  }
  if (plan.probe.empty() && joint.guard.samples > 0)
    throw UserError(
        "train.joint.guard: the dataset has no validation sample, expected some to compare the "
        "backbone on; raise train.validation_fraction, distil more, or set "
        "train.joint.guard.samples to 0 to train without a guard");
  return plan;
}

}  // namespace medusa
