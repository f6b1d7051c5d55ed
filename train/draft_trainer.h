// Makes a draft model: some layers of the backbone, trained to predict what the backbone predicts.
// Distillation of drafts: DistillSpec (arXiv:2310.08461); the loss is the forward KL on the
// backbone's own text.
#pragma once

#include <cstdint>
#include <vector>

#include "backbone/weights.h"
#include "data/dataset/dataset_reader.h"
#include "train/draft_config.h"
#include "train/joint/trainable_llama.h"
#include "train/samples/hidden_source.h"

namespace medusa {

/// The backbone's first ceil(count / 2) and last floor(count / 2) layers.
/// @throws UserError  count is not below num_layers.
std::vector<int64_t> draft_layers(int64_t count, int64_t num_layers);

struct DraftTrainResult {
  bool complete = false;  // false: interrupted; the draft is as good as it got
  int64_t steps = 0;      // optimiser steps
  double loss = 0;        // cross-entropy against the backbone's distribution, validation, nats
  double agreement = 0;   // share of validation positions where its first choice is the
                          // backbone's
  int64_t num_validation = 0;  // positions
  double seconds = 0;
};

/// Trains a cut in place on the dataset's training samples, with the backbone's own distribution at
/// each answer token as the label.
/// @param hidden  the backbone's states of a sample's answer.
/// @param seed    of split and order.
/// @throws UserError  nothing to train on.
DraftTrainResult train_draft(const DraftTrainConfig& config, const DatasetReader& dataset,
                             const HiddenSource& hidden, uint64_t seed, TrainableLlama& draft);

}  // namespace medusa
