// What medusa train will take and learn from: all of it with --dry-run, which stops there, and in
// short before every run.
#pragma once

#include "data/dataset/dataset_reader.h"
#include "tools/run/run_config.h"

namespace medusa {

/// Prints, for each stage, what is trained, steps, memory, disk and time with what they assume; a
/// sample with the tokens that have a loss marked; and the first step's losses beside those of the
/// backbone itself and of knowing nothing. Writes no file.
/// @param json  one object on stdout instead.
/// @throws UserError  what would stop the run would stop this, too.
void dry_run(const RunConfig& config, const DatasetReader& dataset, bool as_json);

/// Prints parameters, steps, time, memory and disk of a stage, and what looks wrong, on stderr. It
/// takes as long as a step.
/// @throws UserError  what would stop the stage.
void print_estimate(const RunConfig& config, const DatasetReader& dataset, StageKind stage);

}  // namespace medusa
