// The joint stage (Medusa-2): next batches, step, report, guard, save.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backbone/weights.h"
#include "data/dataset/dataset_reader.h"
#include "heads/heads_checkpoint.h"
#include "train/joint/drift_guard.h"
#include "train/joint/joint_config.h"
#include "train/processes/peers.h"
#include "train/record/metrics.h"
#include "train/train_config.h"

namespace medusa {

struct JointInputs {
  const DatasetReader& dataset;
  const Weights& backbone;            // whole; its dtype is what training computes in
  const MedusaHeads& heads;           // to begin with
  std::string heads_fingerprint;      // of these, for the run's identity
  std::filesystem::path work_folder;  // checkpoint/ and metrics.jsonl; a run found here is resumed
  Reported reported = {};             // told after each report
  Peers* peers = nullptr;             // the processes that train together; null: this one alone
};

/// In several processes all have the same, but for `drift`, which the first measures.
struct JointResult {
  bool complete = false;               // false: interrupted; the checkpoint holds everything so far
  std::optional<std::string> stopped;  // what the guard found; then the result is the last good
                                       // checkpoint
  int64_t steps = 0;                   // optimiser steps behind the result
  double loss = 0;                     // of the last step taken; 0 if there was none to take
  std::optional<Drift> drift;          // of the result, if the guard watches
  std::vector<HeadQuality> validation;  // [K]; empty without validation samples or if interrupted
  int64_t num_validation = 0;           // positions
  int64_t positions = 0;                // answer tokens trained on in this run
  double seconds = 0;                   // of this run
  MedusaHeads heads;                    // trained
  Weights backbone;                     // trained, adapters merged
};

/// Trains backbone and heads together. Samples, seed, labels and lambda_decay are config's, the
/// rest joint's. Continues a checkpoint in work_folder if there is one; the result then is bit for
/// bit that of an unbroken run (same machine, same number of threads). A checkpoint is only written
/// of what the guard lets pass, so that it is also what a run that drifted is rolled back to.
///
/// Several processes make each step together, of `accumulate` batches each; so P of them train what
/// one does that accumulates P times as many, but for the order of sums. The first one guards,
/// writes and reports.
///
/// @throws UserError  dataset of another backbone; nothing to train on; a checkpoint of other
///                    settings; a loss that is no number; a folder that cannot be written; a
///                    process that ended or holds other weights.
JointResult train_joint(const TrainConfig& config, const JointConfig& joint,
                        const JointInputs& inputs);

}  // namespace medusa
