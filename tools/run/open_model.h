// The run's model and dataset, and what this program sets for its process: LibTorch's threads,
// notes and progress on stderr.
#pragma once

#include <cstdint>

#include "data/dataset/dataset_reader.h"
#include "runtime/model.h"
#include "runtime/placement.h"
#include "tools/run/run_config.h"

namespace medusa {

/// As place(), with notes on stderr and a GPU's check remembered; LibTorch's pool gets as many
/// threads.
/// @throws as place().
Placement place_process(const BackboneSection& config, int64_t local_rank = 0);

/// What the library is given to load the model as this program does, after place_process().
/// @throws as place().
ModelOptions placed_options(const BackboneSection& config, int64_t local_rank = 0);

/// As Model::load().
/// @param needs_chat_template  false: conversations are neither asked nor learnt from.
/// @throws UserError
Model open_model(const BackboneSection& config, bool needs_chat_template = true);

/// The datasets of train.data with their weights, else the run's own.
/// @throws UserError  as DatasetReader does.
DatasetReader open_dataset(const RunConfig& config);

}  // namespace medusa
