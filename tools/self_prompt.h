// Self-prompting: the chat model writes the questions itself, continuing the start of a user's
// turn.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "infer/target_model.h"
#include "tools/session.h"

namespace medusa {

/// Questions of the run: read from its questions file if that is there, else written by the model,
/// filtered (near-duplicates and empty turns dropped and counted on stderr) and saved.
/// Question i depends on (seed, i) and on the questions before it alone.
/// @throws UserError  the chat template has no user's turn to continue, or nothing usable came out.
std::vector<std::string> self_prompts(const RunConfig& config, const Session& session,
                                      TargetModel& target);

}  // namespace medusa
