#include "tools/commands/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/commands/help.h"
#include "tools/commands/options.h"

namespace medusa {
namespace {

bool asks_for_help(const std::string& argument) { return argument == "--help" || argument == "-h"; }

std::string help_of(const Command& command, bool all) {
  const CommandOptions described(command, "medusa");
  std::string text = command_help(command, described.options.rows());
  if (all && !command.sections.empty()) text += settings_help(settings_of(command.sections));
  return text;
}

/// `medusa help [COMMAND [all]]`.
std::string help_for(const std::vector<std::string>& words) {
  if (words.empty()) return program_help();
  return help_of(command_named(words[0]), words.size() > 1 && words[1] == "all");
}

}  // namespace

CommandOptions::CommandOptions(const Command& command, const std::string& program)
    : options(command.name) {
  common.program = program;
  common.says_run = command.says_run;
  add_common_options(options, command, common);
  run = command.attach(options, common);
  add_setting_options(options, command, common);
}

const Command& command_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string close = nearest_word(name, names);
  throw UserError(fmt::format("unknown subcommand '{}'{}, expected one of {}; see medusa --help",
                              name, close.empty() ? "" : " (did you mean '" + close + "'?)",
                              fmt::join(names, ", ")));
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> out;
    const auto add = [&out](const char* group, std::vector<Command> some) {
      for (Command& each : some) {
        each.group = group;
        out.push_back(std::move(each));
      }
    };
    add("Decode", {generate_command(), serve_command()});
    add("Make heads: run does these in one go",
        {run_command(), distill_command(), train_command(), calibrate_command()});
    add("Measure", {bench_command(), profile_command(), quality_command(), report_command()});
    add("Files and shell", {init_command(), inspect_command(), dataset_command(), import_command(),
                            export_command(), doctor_command(), completion_command()});
    add("For other drafters", {build_store_command(), make_draft_command()});
    return out;
  }();
  return all;
}

std::function<void()> parse_command_line(const std::string& program,
                                         const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::vector<std::string> names;
    for (const Command& command : commands()) names.push_back(command.name);
    throw UserError(
        fmt::format("no subcommand given, expected medusa COMMAND, one of {}; see medusa --help",
                    fmt::join(names, ", ")));
  }
  if (asks_for_help(arguments[0]) || arguments[0] == "help")
    return [words = std::vector<std::string>(arguments.begin() + 1, arguments.end())] {
      print_text("{}", help_for(words));
    };
  const Command& command = command_named(arguments[0]);
  const auto asked = std::find_if(arguments.begin(), arguments.end(), asks_for_help);
  if (asked != arguments.end()) {
    const bool all = asked + 1 != arguments.end() && *(asked + 1) == "all";
    return [&command, all] { print_text("{}", help_of(command, all)); };
  }
  const auto parsed = std::make_shared<CommandOptions>(command, program);
  parsed->options.parse({arguments.begin() + 1, arguments.end()});
  return [parsed] { parsed->run(); };
}

void run_command_line(const std::string& program, const std::vector<std::string>& arguments) {
  parse_command_line(program, arguments)();
}

}  // namespace medusa
