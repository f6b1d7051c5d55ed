// What --help prints: pages of at most 40 lines and 100 columns, common things first.
#pragma once

#include <string>
#include <vector>

#include "tools/front/command_page.h"

namespace medusa {

/// The list of commands, as `medusa --help`.
std::string program_help(const std::vector<CommandPage>& commands);

/// The options of a command, with examples.
std::string command_help(const CommandPage& command);

/// Settings with defaults and ranges, in parts with titles.
std::string settings_help(const std::vector<FieldHelp>& settings);

}  // namespace medusa
