// A joint run laid out beforehand: which samples make which step, so that its state is its step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/dataset_reader.h"
#include "train/joint/joint_config.h"
#include "train/samples/sample_batches.h"
#include "train/train_config.h"

namespace medusa {

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
