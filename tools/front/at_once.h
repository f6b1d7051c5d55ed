// What medusa answers at once, without loading LibTorch and a model: help, completion scripts, and
// misspelt commands, options and words.
#pragma once

#include <string>
#include <vector>

#include "tools/front/command_page.h"

namespace medusa {

/// @param arguments  behind the program's name.
/// @returns  false: there is a command to run, whose numbers and files are still to be checked.
/// @throws UserError  no command, or an unknown command, option or word; the nearest is said.
bool answer_at_once(const std::vector<std::string>& arguments, const ProgramPages& pages);

}  // namespace medusa
