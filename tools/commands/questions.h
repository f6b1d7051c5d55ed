// Prompts that a command asks, and notes of what it passes over.
#pragma once

#include <string>
#include <vector>

#include "data/prompts.h"

namespace medusa {

/// Reads them, and says how many conversations of the file hold none.
/// @throws UserError  as read_prompts().
PromptSet read_questions(const std::string& file);

/// Says that of several turns only the first is answered.
void note_later_turns(const std::vector<Prompt>& prompts);

}  // namespace medusa
