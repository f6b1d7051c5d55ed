// Makes a draft model: some layers of the backbone, trained to predict what the backbone predicts.
// Distillation of drafts: DistillSpec (arXiv:2310.08461); the loss is the forward KL on the
// backbone's own text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backbone/weights.h"
#include "data/dataset/dataset_reader.h"
#include "train/draft_config.h"
#include "train/joint/trainable_llama.h"
#include "train/samples/hidden_source.h"
#include "train/train_loop.h"

namespace medusa {

/// The backbone's first ceil(count / 2) and last floor(count / 2) layers.
/// @throws UserError  count is not below num_layers.
std::vector<int64_t> draft_layers(int64_t count, int64_t num_layers);

struct DraftInputs {
  const DatasetReader& dataset;
  HiddenSource hidden;                // the backbone's states of a sample's answer
  std::string backbone;               // its fingerprint, for the run's identity
  uint64_t seed = 1;                  // of split and order
  std::filesystem::path work_folder;  // checkpoint/ and metrics.jsonl; a run found here is resumed
  Reported reported = {};             // told after each report
  ProgressFunction progress = {};     // empty: untold
  RemoveProgress begin_anew = {};     // as LoopPlace::begin_anew
};

struct DraftTrainResult : TrainResult {
  double validation_loss = 0;  // cross-entropy against the backbone's distribution, nats
  double agreement = 0;        // share of validation positions where its first choice is the
                               // backbone's
};

/// Trains a cut in place on the dataset's training samples, with the backbone's own distribution at
/// each answer token as the label. Resumes and ends as run_stage() does (train_loop.h).
/// @throws UserError  nothing to train on; as run_stage() does.
DraftTrainResult train_draft(const DraftTrainConfig& config, const DraftInputs& inputs,
                             TrainableLlama& draft);

}  // namespace medusa
