// medusa completion: prints the script that lets the shell complete medusa's command line.
#include <memory>

#include "base/error.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/command_line.h"
#include "tools/commands/options.h"
#include "tools/front/completion.h"

namespace medusa {
Command completion_command() {
  return {.name = "completion",
          .summary = "print the completion script of a shell",
          .examples = {"completion bash > ~/.local/share/bash-completion/completions/medusa",
                       "completion zsh > ~/.zfunc/_medusa",
                       "completion fish > ~/.config/fish/completions/medusa.fish"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto shell = std::make_shared<std::string>();
            added.positional("SHELL", *shell, "bash, zsh or fish", true, {"bash", "zsh", "fish"});
            return [shell, &common] {
              if (common.json)
                throw UserError(
                    "completion: found --json, expected none, as a script is text; leave it out");
              print_text("{}", completion_script(*shell, describe_program()));
            };
          }};
}

}  // namespace medusa
