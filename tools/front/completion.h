// Completion scripts of shells.
#pragma once

#include <string>

#include "tools/front/command_page.h"

namespace medusa {

/// A script for the shell. It completes commands, their options and the values of these, after
/// --set the keys and values of settings, and file names where files are meant.
/// @param shell  "bash", "zsh" or "fish".
/// @throws UserError  another shell.
std::string completion_script(const std::string& shell, const ProgramPages& pages);

}  // namespace medusa
