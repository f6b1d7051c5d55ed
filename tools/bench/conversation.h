// A question with all its turns, answered by one method: the model's own answers go into the next
// prompt.
#pragma once

#include <vector>

#include "data/prompts.h"
#include "tools/answer.h"

namespace medusa {

/// Answers the prompt and then each later turn, through the chat template. It ends early where a
/// prompt no longer fits into the context, and when interrupted.
/// @returns  one answer per turn; at least one.
/// @throws UserError  the first prompt does not fit.
std::vector<Answer> play_conversation(const Session& session, const Engine& engine,
                                      const Prompt& prompt, const AnswerOptions& options);

}  // namespace medusa
