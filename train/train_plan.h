// A whole run laid out beforehand: which samples make which batch, so that the state of a run is
// its step alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/dataset_reader.h"
#include "data/sample_order.h"
#include "train/train_config.h"

namespace medusa {

struct TrainPlan {
  std::vector<std::vector<int64_t>> batches;     // samples of each, in the order of training
  std::vector<int64_t> positions_before;         // [batches + 1] positions of all earlier batches
  std::vector<std::vector<int64_t>> validation;  // batches that judge the heads
  int64_t accumulate = 1;                        // batches of one step
  int64_t steps_per_epoch = 1;                   // about

  int64_t num_steps() const {
    return (static_cast<int64_t>(batches.size()) + accumulate - 1) / accumulate;
  }
  int64_t first_batch(int64_t step) const { return step * accumulate; }
  int64_t end_batch(int64_t step) const {
    return std::min((step + 1) * accumulate, static_cast<int64_t>(batches.size()));
  }
};

/// @throws UserError  no sample has a position to train on.
TrainPlan plan_training(const TrainConfig& config, const DatasetReader& dataset);

}  // namespace medusa
