// A subcommand of `medusa`, and the table of all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/commands/common_options.h"

namespace medusa {

class Options;

struct Command {
  std::string name;
  std::string summary;
  std::string details = {};                // a paragraph below it
  std::vector<std::string> sections = {};  // of the settings it reads; empty: it takes no model
  std::vector<std::string> settings = {};  // options that are short for one: "--temperature"
  std::string text_section = "generate";   // whose sampling these set
  bool takes_model = true;                 // as its first argument
  bool says_run = true;                    // a run folder that nobody named is said
  std::vector<std::string> examples = {};  // without "medusa ", or whole lines for the shell
  std::string group = {};                  // under which medusa --help lists it

  /// Adds the command's own options and returns what to run once they are parsed.
  std::function<std::function<void()>(Options&, const CommonOptions&)> attach;
};

Command run_command();
Command init_command();
Command distill_command();
Command train_command();
Command calibrate_command();
Command build_store_command();
Command make_draft_command();
Command generate_command();
Command chat_command();
Command serve_command();
Command bench_command();
Command profile_command();
Command quality_command();
Command import_command();
Command export_command();
Command doctor_command();
Command dataset_command();
Command inspect_command();
Command report_command();
Command completion_command();

/// All of them, in the order of --help.
const std::vector<Command>& commands();

/// @throws UserError  there is none; the nearest name is said.
const Command& command_named(const std::string& name);

}  // namespace medusa
