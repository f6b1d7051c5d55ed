// Heads before training: what they can guess follows from the dataset.
#pragma once

#include "data/dataset/dataset_reader.h"
#include "heads/medusa_heads.h"
#include "train/train_config.h"

namespace medusa {

/// A truncated output keeps the most frequent tokens of the training samples, each counted as often
/// as the epochs visit it: validation must not choose what it is judged by.
MedusaHeads untrained_heads(const TrainConfig& config, const HeadsConfig& heads,
                            const DatasetReader& dataset, const Weights& backbone);

}  // namespace medusa
