// The commands of a chat: lines that begin with "/".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace medusa {

enum class SlashCommand {
  System,
  Regen,
  Undo,
  Save,
  Load,
  Drafter,
  Temperature,
  Seed,
  Stats,
  Help,
  Quit,
};

struct GivenSlashCommand {
  SlashCommand command;
  std::string argument;  // white space around it left out
};

/// Nothing for a line that does not begin with "/": it is a message.
/// @throws UserError  there is no such command (the nearest is named), or its argument is missing
///                    or too much.
std::optional<GivenSlashCommand> read_slash_command(std::string_view line);

/// A line for each command, and how messages of several lines are typed.
std::string slash_help();

}  // namespace medusa
