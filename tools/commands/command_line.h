// The command line: finds the subcommand, parses its options, runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/commands/common_options.h"
#include "tools/commands/options.h"

namespace medusa {

/// The options of a command and where their values go. They refer to each other: it stays where it
/// is.
struct CommandOptions {
  CommandOptions(const Command& command, const std::string& program);
  CommandOptions(const CommandOptions&) = delete;
  CommandOptions& operator=(const CommandOptions&) = delete;

  CommonOptions common;
  Options options;
  std::function<void()> run;  // once they are parsed
};

/// All commands with their options, and all settings.
ProgramPages describe_program();

/// Parses a command line without running it.
/// @param program    as it was called.
/// @param arguments  behind it; a command and what belongs to it.
/// @returns  what the command line asks for.
/// @throws UserError  unknown subcommand or option, a value missing or wrong.
std::function<void()> parse_command_line(const std::string& program,
                                         const std::vector<std::string>& arguments);

/// @throws UserError  as above, or whatever the command finds wrong.
void run_command_line(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace medusa
