// Where the stages of training put what they make: what of an earlier training they may replace,
// and what --fresh removes of its progress.
#pragma once

#include <string>

#include "tools/run/run_config.h"
#include "train/train_loop.h"

namespace medusa {

/// What training would be refused for, as far as settings and folders tell, before anything is
/// made or removed. The model's weights are read only to compare them with heads that are named.
/// @throws UserError  heads that are named are not there, of another backbone or of other settings;
///                    no sample is to judge, and one is needed; a place of a result holds something
///                    else: imported heads, those to begin with, heads or a tuned model whose
///                    training is not there, or, with `fresh`, any heads in a place that is not the
///                    run's own.
void check_stages(const RunConfig& config, bool fresh);

/// Other heads that the training may replace: those in the run's own place, if --fresh says so, or
/// said so when the training was begun; or if they are damaged. Asked before begin_stages_anew().
/// @returns  as HeadsTrainerOptions::replaceable.
std::string replaceable_heads(const RunConfig& config, bool fresh);

/// Removes the progress of the heads' stage, if it is one of the run's. What it made stays until it
/// is replaced, which is noted as allowed. A joint stage is noted as one that begins anew, too, and
/// removes its own when it can begin.
void begin_stages_anew(const RunConfig& config);

/// What removes a stage's progress; empty: it is continued. Refer to the settings.
RemoveProgress removal_of_heads_progress(const RunConfig& config, bool fresh);
RemoveProgress removal_of_joint_progress(const RunConfig& config, bool fresh);
RemoveProgress removal_of_draft_progress(const RunConfig& config, bool fresh);

/// Whether --fresh began a draft model's training that has not ended: the draft model that is there
/// is not what it makes.
bool draft_is_begun_anew(const RunConfig& config);
void end_of_draft(const RunConfig& config);

}  // namespace medusa
