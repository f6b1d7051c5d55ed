// The stages of medusa train: from the run's settings to trained heads, or to a tuned model and its
// heads.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/dataset/dataset_reader.h"
#include "tools/measure/resources.h"
#include "tools/run/run_config.h"
#include "train/joint/joint_run.h"
#include "train/resource_estimate.h"
#include "train/trainer.h"

namespace medusa {

/// How a stage is run.
struct StageOptions {
  Reported reported{};            // told after each report
  ProcessGroup* group = nullptr;  // processes that train together, of which the first writes; null:
                                  // this one alone
  std::string replaceable{};      // as HeadsTrainerOptions::replaceable; of the heads' stage
  bool fresh = false;             // each stage removes its progress when nothing else is missing
};

/// @throws UserError
TrainResult run_heads_stage(const RunConfig& config, const DatasetReader& dataset,
                            const StageOptions& options);

/// What that would take, without doing it.
ResourceEstimate estimate_heads_resources(const RunConfig& config, const DatasetReader& dataset);

// The joint stage of medusa train: from the run's settings to a tuned model and its heads on disk.

/// Trains, and writes <run>/joint/model, a Hugging Face folder with the adapters merged, and
/// <run>/joint/heads, unless interrupted.
/// @throws UserError
JointResult run_joint_stage(const RunConfig& config, const DatasetReader& dataset,
                            const StageOptions& options);

/// Says so where the checkpoint, if there is one, comes from other CPU threads than there are now.
/// @throws UserError  it is not whole.
void note_other_threads(const std::filesystem::path& checkpoint);

/// What that would take, without doing it. The heads of an earlier stage that are not there yet
/// count as untrained ones.
ResourceEstimate estimate_joint_resources(const RunConfig& config, const DatasetReader& dataset);

/// What came out, for people, with the commands that use it if it is complete.
void report_joint(const RunConfig& config, const JointResult& result, const PeakMemory& peak);
nlohmann::ordered_json joint_json(const RunConfig& config, const JointResult& result,
                                  const PeakMemory& peak);

}  // namespace medusa
