// The training loop: step, report, validate, guard, save. What is trained is the stage's affair.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "train/optimizer_config.h"
#include "train/processes/process_group.h"
#include "train/record/metrics.h"
#include "train/record/run_identity.h"
#include "train/train_stage.h"

namespace medusa {

struct LoopConfig {
  OptimizerConfig optimizer;
  ReportConfig reports;
  int64_t keep_checkpoints = 1;
  bool keep_best = false;  // what the best validation judged is the result
};

/// Removes an earlier run's progress from a work folder. Called when nothing else is missing that
/// training needs, so that what is refused costs nothing.
using RemoveProgress = std::function<void()>;

/// Where a run is kept, and with whom it is trained.
struct LoopPlace {
  std::filesystem::path work_folder;  // checkpoint/ and metrics.jsonl; a run found here is resumed
  RunIdentity identity;
  Reported reported = {};          // told after each report
  ProcessGroup* group = nullptr;   // processes that train with this one; null: it is alone
  ProgressFunction progress = {};  // of the first process; empty: untold
  RemoveProgress begin_anew = {};  // of the first process; empty: a run found there is resumed
};

struct TrainResult {
  bool complete = false;               // false: interrupted; the checkpoint holds everything so far
  std::optional<std::string> stopped;  // what the guard found; then the result is the last good
                                       // checkpoint
  int64_t steps = 0;  // optimizer steps behind the result, those of earlier runs included; with
                      // keep_best fewer than were done if later ones made it worse
  double loss = 0;    // of the last step taken; 0 if there was none to take
  std::vector<HeadQuality> validation;  // [K]; empty without validation samples or if interrupted
  int64_t num_validation = 0;           // positions
  int64_t positions = 0;                // trained on in this run
  double seconds = 0;                   // of this run
};

/// Runs a stage to its end, or to the end of the step in which interrupted() becomes true, with a
/// checkpoint then. A checkpoint in the work folder is continued: parameters and moments then are
/// bit for bit those of an unbroken run (same machine, same number of threads), and the reports say
/// the same but for times and memory. A checkpoint is written only of what the stage's guard lets
/// pass, so that it is also what a run that drifted is taken back to. A finished run is not
/// repeated, only validated again.
///
/// Of several processes the first alone writes, reports and is asked for score and guard.
///
/// @throws UserError  a checkpoint of another run; a loss that is no number; a folder that cannot
/// be
///                    written; a process that ended or holds other weights.
TrainResult run_stage(TrainStage& stage, const LoopConfig& config, const LoopPlace& place);

}  // namespace medusa
