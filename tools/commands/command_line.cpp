#include "tools/commands/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/output.h"
#include "tools/commands/command.h"

namespace medusa {
namespace {

std::string command_list() {
  std::string text;
  for (const Command& command : commands())
    text += fmt::format("  {:<13}{}\n", command.name, command.summary);
  return text;
}

std::string program_help() {
  return "medusa: trains Medusa decoding heads on text the model wrote itself, calibrates which "
         "guesses are\n"
         "worth trying, and decodes with them.\n\n"
         "usage: medusa COMMAND [options]\n\n" +
         command_list() + "\nmedusa COMMAND --help lists the options and settings of a command.\n";
}

const Command& find_command(const std::string& name) {
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

/// An option that is short for a --set.
void add_shorthand(CLI::App& app, const std::string& option, const std::string& key,
                   const std::string& help, CommonOptions& common) {
  app.add_option_function<std::string>(
      option,
      [&common, key](const std::string& value) { common.sets.push_back(key + "=" + value); },
      help + " (sets " + key + ")");
}

}  // namespace

void add_common_options(CLI::App& app, const Command& command, CommonOptions& common) {
  app.add_flag("--json", common.json, "print one machine-readable object on stdout");
  if (command.sections.empty()) return;
  app.add_option("--config", common.config, "YAML file of the run")->required();
  app.add_option("--set", common.sets, "override a setting: section.key=value (repeatable)")
      ->expected(1)
      ->take_all();
  add_shorthand(app, "--device", "backbone.device", "auto, cpu or cuda", common);
  add_shorthand(app, "--dtype", "backbone.dtype", "auto, float32, bfloat16, int8 or stored",
                common);
  add_shorthand(app, "--threads", "backbone.threads", "CPU threads", common);
  if (command.limits_cache)
    add_shorthand(app, "--cache-mb", "backbone.cache_mb", "most megabytes of the KV cache", common);
  add_shorthand(app, "--seed", "seed", "random seed", common);
  app.footer("\nSettings of the YAML file:\n" + settings_help(command.sections));
}

std::string settings_help(const std::vector<std::string>& sections) {
  RunConfig config;
  FieldLister lister;
  config.fields(lister);
  std::string text;
  for (const FieldHelp& line : lister.lines()) {
    const std::string section = line.key.substr(0, line.key.find('.'));
    const bool top = section == line.key;
    if (!top && std::find(sections.begin(), sections.end(), section) == sections.end()) continue;
    text += fmt::format("  {:<40} {}{}\n",
                        line.key + ": " + (line.value.empty() ? "(required)" : line.value),
                        line.help, line.allowed.empty() ? "" : " [" + line.allowed + "]");
  }
  return text;
}

RunConfig read_run_config(const CommonOptions& options) {
  return read_config<RunConfig>(YamlFile(options.config, options.sets));
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      distill_command(),    train_command(),    calibrate_command(), build_store_command(),
      make_draft_command(), generate_command(), serve_command(),     bench_command(),
      profile_command(),    quality_command(),  inspect_command(),   import_command(),
      export_command(),     doctor_command(),   dataset_command(),   report_command(),
      completion_command()};
  return all;
}

void run_command_line(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    throw UserError("no subcommand given, expected medusa COMMAND\n\n" + command_list());
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_text("{}", program_help());
    return;
  }
  const Command& command = find_command(arguments[0]);
  CLI::App app(command.summary, "medusa " + command.name);
  app.get_formatter()->column_width(34);
  CommonOptions common;
  add_common_options(app, command, common);
  const std::function<void()> run = command.attach(app, common);
  std::vector<std::string> rest(arguments.rbegin(),
                                arguments.rend() - 1);  // CLI11 wants them reversed
  try {
    app.parse(rest);
  } catch (const CLI::CallForHelp&) {
    print_text("{}", app.help());
    return;
  } catch (const CLI::ParseError& error) {
    throw UserError(
        fmt::format("{}: {}; see medusa {} --help", command.name, error.what(), command.name));
  }
  run();
}

}  // namespace medusa
