// A training run on disk: masters, optimizer moments, step, and what the run was made with. The
// order of samples is a function of seed and step, so the step is all there is to it. A checkpoint
// is sealed: what was altered since it was written is refused before anything of it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/adamw.h"
#include "train/record/run_identity.h"

namespace medusa {

/// What a checkpoint says besides what is trained.
struct CheckpointNotes {
  double tokens_per_step = 0;       // expected of what is trained; 0: not measured
  std::vector<double> unreported;   // sums over the steps since the last report (StepSums)
  double best_tokens_per_step = 0;  // of the best checkpoint that there was then; 0: there was none
};

/// Complete or absent; the earlier checkpoint stays until the new one is whole.
/// @param parameters       all that is trained, the optimizer's own; names are the file's.
/// @throws UserError  the folder cannot be written or the disk is full.
void save_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                     const NamedTensors& parameters, const AdamW& optimizer,
                     const CheckpointNotes& notes = {});

/// What a checkpoint says of itself.
struct CheckpointSummary {
  int64_t step = 0;  // optimizer steps done
  CheckpointNotes notes;
  std::vector<std::string> run;  // what decided it, "key=value"
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

/// Fills parameters and optimizer from the folder, if there is a checkpoint.
/// @param notes  filled with the checkpoint's, if it is not null.
/// @returns      optimizer steps done; 0 if there is none.
/// @throws UserError  it belongs to a run with other settings (names the first), is damaged or of
///                    another version; then nothing is filled.
int64_t load_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters, AdamW& optimizer,
                        CheckpointNotes* notes = nullptr);

/// Fills the parameters alone from a checkpoint that is there.
/// @returns  its optimizer steps.
/// @throws UserError  as load_checkpoint() does.
int64_t load_parameters(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters);

}  // namespace medusa
