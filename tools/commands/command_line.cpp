#include "tools/commands/command_line.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/output.h"
#include "tools/commands/command.h"
#include "tools/front/help.h"
#include "tools/version.h"

namespace medusa {
namespace {

CommandPage page_without_options(const Command& command) {
  return {.name = command.name,
          .summary = command.summary,
          .details = command.details,
          .group = command.group,
          .examples = command.examples,
          .sections = command.sections,
          .rows = {},
          .names = {}};
}

}  // namespace

CommandOptions::CommandOptions(const Command& command, const std::string& program)
    : options(page_without_options(command), all_settings()) {
  common.program = program;
  common.says_run = command.says_run;
  add_common_options(options, command, common);
  run = command.attach(options, common);
  add_setting_options(options, command, common);
}

const Command& command_named(const std::string& name) { return command_of(commands(), name); }

const std::vector<Command>& commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> out;
    const auto add = [&out](const char* group, std::vector<Command> some) {
      for (Command& each : some) {
        each.group = group;
        out.push_back(std::move(each));
      }
    };
    add("Decode", {generate_command(), chat_command(), serve_command()});
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

ProgramPages describe_program() {
  ProgramPages out{.commands = {}, .settings = all_settings()};
  for (const Command& command : commands())
    out.commands.push_back(CommandOptions(command, "medusa").options.page());
  return out;
}

std::function<void()> parse_command_line(const std::string& program,
                                         const std::vector<std::string>& arguments) {
  const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "--version") return [words] { print_version(words); };
  const auto parsed = std::make_shared<CommandOptions>(command_named(arguments[0]), program);
  parsed->options.parse(words);
  return [parsed] { parsed->run(); };
}

void run_command_line(const std::string& program, const std::vector<std::string>& arguments) {
  if (arguments == std::vector<std::string>{"help", "--json"})
    return print_json(pages_json(describe_program()));
  if (arguments.empty())
    throw UserError(
        "medusa-core: no subcommand given, expected what medusa hands over; start medusa instead");
  parse_command_line(program, arguments)();
}

}  // namespace medusa
