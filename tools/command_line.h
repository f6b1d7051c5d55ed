// The command line: finds the subcommand, parses its options, runs it.
#pragma once

#include <string>
#include <vector>

namespace medusa {

/// @param arguments  without the program's name.
/// @throws UserError  unknown subcommand or option, missing value, or whatever the command finds
/// wrong.
void run_command_line(const std::vector<std::string>& arguments);

/// Settings of these sections with defaults and ranges, as --help prints them.
std::string settings_help(const std::vector<std::string>& sections);

}  // namespace medusa
