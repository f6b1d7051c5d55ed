// The stages of medusa train: from the run's settings to trained heads, or to a tuned model and its
// heads.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/dataset/dataset_reader.h"
#include "tools/measure/resources.h"
#include "tools/run/run_config.h"
#include "train/joint/joint_run.h"
#include "train/resource_estimate.h"
#include "train/trainer.h"

namespace medusa {

/// @param reported        told after each report.
/// @param group           processes that train with this one; null: none.
/// @param replace_others  as HeadsTrainerOptions::replace_others.
/// @throws UserError
TrainResult run_heads_stage(const RunConfig& config, const DatasetReader& dataset,
                            const Reported& reported, ProcessGroup* group, bool replace_others);

/// Whether heads of another training may be replaced: those in the run's own folder, beside a
/// training that was begun or is to begin anew. Asked before its progress is removed.
bool may_replace_others(const RunConfig& config, bool fresh);

/// @throws UserError  the heads' place holds imported heads, or is named and holds heads while this
///                    run has trained none.
void check_heads_output(const RunConfig& config);

/// What that would take, without doing it.
ResourceEstimate estimate_heads_resources(const RunConfig& config, const DatasetReader& dataset);

// The joint stage of medusa train: from the run's settings to a tuned model and its heads on disk.

/// @throws UserError  what the stage writes would replace something else.
void check_joint_outputs(const RunConfig& config);

/// Trains, and writes <run>/joint/model, a Hugging Face folder with the adapters merged, and
/// <run>/joint/heads, unless interrupted.
/// @param reported  told after each report.
/// @param group     the processes that train together, of which the first writes; null: this one
///                  alone.
/// @throws UserError
JointResult run_joint_stage(const RunConfig& config, const DatasetReader& dataset,
                            const Reported& reported, ProcessGroup* group);

/// What that would take, without doing it. The heads of an earlier stage that are not there yet
/// count as untrained ones.
ResourceEstimate estimate_joint_resources(const RunConfig& config, const DatasetReader& dataset);

/// What came out, for people, with the commands that use it if it is complete.
void report_joint(const RunConfig& config, const JointResult& result, const PeakMemory& peak);
nlohmann::ordered_json joint_json(const RunConfig& config, const JointResult& result,
                                  const PeakMemory& peak);

}  // namespace medusa
