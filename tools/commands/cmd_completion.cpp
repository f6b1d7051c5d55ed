// medusa completion: prints the script that lets the shell complete medusa's command line.
#include <memory>

#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/command_line.h"
#include "tools/commands/completion.h"
#include "tools/commands/options.h"

namespace medusa {
namespace {

/// Every command as its own parser knows it, so that the script cannot drift from the program.
std::vector<CommandHelp> describe_commands() {
  std::vector<CommandHelp> out;
  for (const Command& command : commands()) {
    const CommandOptions described(command, "medusa");
    out.push_back({command.name, command.summary, described.options.rows()});
  }
  return out;
}

std::vector<SettingHelp> describe_settings() {
  RunConfig config;
  FieldLister lister;
  config.fields(lister);
  std::vector<SettingHelp> out;
  for (const FieldHelp& line : lister.lines()) out.push_back({line.key, choices_of(line)});
  return out;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "print the completion script of a shell",
          .examples = {"completion bash > ~/.local/share/bash-completion/completions/medusa",
                       "completion zsh > ~/.zfunc/_medusa",
                       "completion fish > ~/.config/fish/completions/medusa.fish"},
          .attach = [](Options& added, const CommonOptions&) -> std::function<void()> {
            const auto shell = std::make_shared<std::string>();
            added.positional("SHELL", *shell, "bash, zsh or fish", true, {"bash", "zsh", "fish"});
            return [shell] {
              print_text("{}", completion_script(*shell, describe_commands(), describe_settings()));
            };
          }};
}

}  // namespace medusa
