// A training run on disk: masters, optimiser moments, step, and what the run was made with. The
// order of samples is a function of seed and step, so the step is all there is to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset_reader.h"
#include "train/adamw.h"

namespace medusa {

/// "key=value" for everything that decides what is trained: settings and fingerprints.
using RunIdentity = std::vector<std::string>;

/// How many processes train together. Not compared as such: what they train on is that of one
/// process with a batch of all their positions, which train.batch_positions then says here.
std::string processes_entry(int64_t count);

/// What a run is trained on, for its identity: fingerprints and weights, not places.
RunIdentity dataset_identity(const DatasetReader& dataset);

/// Complete or absent; the earlier checkpoint stays until the new one is whole.
/// @param parameters       all that is trained, the optimiser's own; names are the file's.
/// @param tokens_per_step  expected of what is trained; 0: not measured.
/// @throws UserError  the folder cannot be written or the disk is full.
void save_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                     const NamedTensors& parameters, const AdamW& optimizer,
                     double tokens_per_step = 0);

/// The tokens per step that a checkpoint was saved with; nothing if there is no checkpoint.
std::optional<double> checkpoint_score(const std::filesystem::path& folder);

/// Fills parameters and optimiser from the folder, if there is a checkpoint.
/// @returns  optimiser steps done; 0 if there is none.
/// @throws UserError  it belongs to a run with other settings (names the first), is damaged or of
///                    another version.
int64_t load_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters, AdamW& optimizer);

/// Fills the parameters alone from a checkpoint that is there.
/// @returns  its optimiser steps.
/// @throws UserError  as load_checkpoint() does.
int64_t load_parameters(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters);

}  // namespace medusa
