// medusa completion: prints the script that lets the shell complete medusa's command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/command_line.h"
#include "tools/commands/completion.h"

namespace medusa {
namespace {

/// Every command as its own parser knows it, so that the script cannot drift from the program.
std::vector<CommandHelp> describe_commands() {
  std::vector<CommandHelp> out;
  for (const Command& command : commands()) {
    CLI::App app;
    CommonOptions common;
    add_common_options(app, command, common);
    command.attach(app, common);
    CommandHelp help{command.name, {}};
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames())
        help.options.push_back({"--" + name, option->get_expected_max() > 0});
    out.push_back(std::move(help));
  }
  return out;
}

/// "auto | cpu | cuda" -> its words; empty for anything that is not a choice.
std::vector<std::string> choices_of(const FieldHelp& line) {
  if (line.value == "true" || line.value == "false") return {"true", "false"};
  if (line.allowed.find(" | ") == std::string::npos) return {};
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= line.allowed.size();) {
    const size_t end = std::min(line.allowed.find(" | ", begin), line.allowed.size());
    out.push_back(line.allowed.substr(begin, end - begin));
    begin = end + 3;
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
  return {"completion",
          "print the completion script of a shell: source <(medusa completion bash)",
          {},
          [](CLI::App& app, const CommonOptions&) -> std::function<void()> {
            const auto shell = std::make_shared<std::string>();
            app.add_option("SHELL", *shell, "bash")->required();
            return [shell] {
              if (*shell != "bash")
                throw UserError(fmt::format(
                    "completion: unknown shell '{}', expected bash; use bash's script", *shell));
              print_text("{}", bash_completion(describe_commands(), describe_settings()));
            };
          }};
}

}  // namespace medusa
