// The bash completion script.
#pragma once

#include <string>
#include <vector>

namespace medusa {

/// One option of a subcommand, as far as completion is concerned.
struct OptionHelp {
  std::string name;  // "--config"
  bool takes_value = false;
};

struct CommandHelp {
  std::string name;
  std::vector<OptionHelp> options;
};

/// A key that --set takes, with the values it may have where they are few.
struct SettingHelp {
  std::string key;                   // dotted: "train.learning_rate"
  std::vector<std::string> choices;  // empty: any value
};

/// A script for `source`. It completes subcommands, their options, and after --set the keys and,
/// where they are few, the values of settings; everything else is completed as a file name.
/// @param names  of commands, options, keys and choices; letters, digits, '-', '_' and '.' only.
std::string bash_completion(const std::vector<CommandHelp>& commands,
                            const std::vector<SettingHelp>& settings);

}  // namespace medusa
