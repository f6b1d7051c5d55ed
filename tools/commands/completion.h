// Completion scripts of shells.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/options.h"

namespace medusa {

struct CommandHelp {
  std::string name, summary;
  std::vector<OptionRow> options;
};

/// A key that --set takes, with the values it may have where they are few.
struct SettingHelp {
  std::string key;                   // dotted: "train.learning_rate"
  std::vector<std::string> choices;  // empty: any value
};

/// A script for the shell. It completes commands, their options and the values of these, after
/// --set the keys and values of settings, and file names where files are meant.
/// @param shell  "bash", "zsh" or "fish".
/// @param names  of commands, options, keys and choices; letters, digits, '-', '_' and '.' only.
/// @throws UserError  another shell.
std::string completion_script(const std::string& shell, const std::vector<CommandHelp>& commands,
                              const std::vector<SettingHelp>& settings);

}  // namespace medusa
