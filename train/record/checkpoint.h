// A training run on disk: masters, optimiser moments, step, and what the run was made with. The
// order of samples is a function of seed and step, so the step is all there is to it. A checkpoint
// is sealed: what was altered since it was written is refused before anything of it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/dataset_reader.h"
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

/// What a checkpoint says of itself.
struct CheckpointSummary {
  int64_t step = 0;            // optimiser steps done
  double tokens_per_step = 0;  // expected of it; 0: not measured
  RunIdentity run;
};

/// Whether there is one. A folder without DONE is none of ours or was copied in part.
/// @throws UserError  there is such a folder.
bool has_checkpoint(const std::filesystem::path& folder);

/// Reads and checks all of a checkpoint, which must be there.
/// @throws UserError  either of its files was altered or cut short; another version.
CheckpointSummary read_checkpoint(const std::filesystem::path& folder);

/// The tokens per step that a checkpoint was saved with; nothing if there is no checkpoint.
/// @throws UserError  it is not whole.
std::optional<double> checkpoint_score(const std::filesystem::path& folder);

/// Fills parameters and optimiser from the folder, if there is a checkpoint.
/// @returns  optimiser steps done; 0 if there is none.
/// @throws UserError  it belongs to a run with other settings (names the first), is damaged or of
///                    another version; then nothing is filled.
int64_t load_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters, AdamW& optimizer);

/// Fills the parameters alone from a checkpoint that is there.
/// @returns  its optimiser steps.
/// @throws UserError  as load_checkpoint() does.
int64_t load_parameters(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters);

}  // namespace medusa
