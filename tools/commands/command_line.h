// The command line: finds the subcommand, parses its options, runs it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace medusa {

struct Command;
struct CommonOptions;

/// Adds --json and, for a command that reads settings, --config, --set and its shorthands.
void add_common_options(CLI::App& app, const Command& command, CommonOptions& common);

/// @param arguments  without the program's name.
/// @throws UserError  unknown subcommand or option, missing value, or whatever the command finds
/// wrong.
void run_command_line(const std::vector<std::string>& arguments);

/// Settings of these sections with defaults and ranges, as --help prints them.
std::string settings_help(const std::vector<std::string>& sections);

}  // namespace medusa
