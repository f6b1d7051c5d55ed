// Self-prompting: the chat model writes the questions itself, continuing the start of a user's
// turn.
#pragma once

#include "data/prompts.h"
#include "infer/target_model.h"
#include "runtime/model.h"
#include "tools/run_config.h"

namespace medusa {

/// Questions of the run: read from its questions file if that is there, else written by the model,
/// filtered (near-duplicates and empty turns dropped and counted on stderr) and saved. What becomes
/// of starter i depends on the seed and i alone. Empty when interrupted.
/// @throws UserError  nothing usable came out.
PromptSet self_prompts(const RunConfig& config, const Model& model, TargetModel& target);

}  // namespace medusa
