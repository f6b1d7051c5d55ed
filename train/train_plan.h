// A whole run laid out beforehand: which samples make which batch (Medusa-1) or which step (a joint
// run), so that the state of a run is its step alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/dataset_reader.h"
#include "data/dataset/sample_order.h"
#include "train/joint/joint_config.h"
#include "train/samples/sample_batches.h"
#include "train/train_config.h"

namespace medusa {

/// Some positions of a pool, in the pool's shuffled order.
struct PlannedBatch {
  int64_t pool = 0;
  int64_t begin = 0, end = 0;
};

struct TrainPlan {
  std::vector<std::vector<int64_t>> pools;  // samples of each, in the order of training
  std::vector<PlannedBatch> batches;        // pool after pool
  std::vector<int64_t> positions_before;    // [batches + 1] positions of all earlier batches
  std::vector<int64_t> validation;          // samples that judge the heads
  int64_t accumulate = 1;                   // batches of one step
  int64_t steps_per_epoch = 1;              // about

  int64_t num_steps() const {
    return (static_cast<int64_t>(batches.size()) + accumulate - 1) / accumulate;
  }
  int64_t first_batch(int64_t step) const { return step * accumulate; }
  int64_t end_batch(int64_t step) const {
    return std::min((step + 1) * accumulate, static_cast<int64_t>(batches.size()));
  }
};

/// Each epoch visits the training samples (data/dataset/sample_order.h) in an order of its own, cut
/// into pools of about shuffle_positions positions, and each pool's positions, shuffled, into
/// batches of equal size.
/// @throws UserError  no sample has a position to train on.
TrainPlan plan_training(const TrainConfig& config, const DatasetReader& dataset);

/// The order in which a pool's positions are taken: a function of (seed, pool).
std::vector<int64_t> shuffled_positions(const Random& random, int64_t pool, int64_t size);

struct JointPlan {
  std::vector<SampleBatch> batches;
  std::vector<SampleBatch> validation;  // one sample each
  std::vector<int64_t> probe;           // samples that the guard watches
  int64_t accumulate = 1;
  int64_t num_steps = 0;

  std::span<const SampleBatch> batches_of(int64_t step) const {
    const auto begin = static_cast<size_t>(step * accumulate);
    const size_t end = std::min(begin + static_cast<size_t>(accumulate), batches.size());
    return std::span(batches).subspan(begin, end - begin);
  }
};

/// @throws UserError  no sample to train on.
JointPlan plan_joint(const SharedTrainConfig& config, const JointConfig& joint,
                     const DatasetReader& dataset);

}  // namespace medusa
