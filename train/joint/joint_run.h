// The joint stage (Medusa-2, arXiv:2401.10774 §2.2.2): backbone and heads, trained together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "backbone/weights.h"
#include "data/dataset/dataset_reader.h"
#include "heads/heads_checkpoint.h"
#include "train/joint/drift_guard.h"
#include "train/joint/joint_config.h"
#include "train/processes/process_group.h"
#include "train/record/metrics.h"
#include "train/train_config.h"
#include "train/train_loop.h"

namespace medusa {

struct JointInputs {
  const DatasetReader& dataset;
  const Weights& backbone;            // whole; its dtype is what training computes in
  const MedusaHeads& heads;           // to begin with
  std::string heads_fingerprint;      // of these, for the run's identity
  std::filesystem::path work_folder;  // checkpoint/ and metrics.jsonl; a run found here is resumed
  Reported reported = {};             // told after each report
  ProcessGroup* group = nullptr;      // the processes that train together; null: this one alone
  ProgressFunction progress = {};     // empty: untold
  RemoveProgress begin_anew = {};     // as LoopPlace::begin_anew
};

/// In several processes all have the same, but for `drift`, which the first measures.
struct JointResult : TrainResult {
  std::optional<Drift> drift;  // of the result, if the guard watches
  MedusaHeads heads;           // trained
  Weights backbone;            // trained, adapters merged
};

/// Trains backbone and heads together. Samples, seed, labels and lambda_decay are config's, the
/// rest joint's. Resumes and ends as run_stage() does (train_loop.h).
///
/// Several processes make each step together, of `accumulate` batches each; so P of them train what
/// one does that accumulates P times as many, but for the order of sums. The first one guards,
/// writes and reports.
///
/// @throws UserError  as check_backbone() and run_stage() do; nothing to train on.
JointResult train_joint(const SharedTrainConfig& config, const JointConfig& joint,
                        const JointInputs& inputs);

}  // namespace medusa
