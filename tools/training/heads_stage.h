// The heads' stage of medusa train: from the run's settings to trained heads.
#pragma once

#include "data/dataset/dataset_reader.h"
#include "tools/run/run_config.h"
#include "train/resource_estimate.h"
#include "train/trainer.h"

namespace medusa {

/// @param reported  told after each report.
/// @param group     processes that train with this one; null: none.
/// @throws UserError
TrainResult run_heads_stage(const RunConfig& config, const DatasetReader& dataset,
                            const Reported& reported, ProcessGroup* group);

/// What that would take, without doing it.
ResourceEstimate estimate_heads_resources(const RunConfig& config, const DatasetReader& dataset);

}  // namespace medusa
