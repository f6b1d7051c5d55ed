// What --help prints: pages of at most 40 lines and 100 columns, common things first.
#pragma once

#include <string>
#include <vector>

#include "base/fields.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"

namespace medusa {

/// The list of commands, as `medusa --help`.
std::string program_help();

/// The options of a command, with examples.
std::string command_help(const Command& command, const std::vector<OptionRow>& rows);

/// Settings with defaults and ranges, in parts with titles.
std::string settings_help(const std::vector<FieldHelp>& settings);

}  // namespace medusa
