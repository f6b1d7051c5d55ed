// A subcommand of `medusa`, and the options that all of them share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/run_config.h"

namespace CLI {
class App;
}

namespace medusa {

struct CommonOptions {
  std::string config;             // YAML file
  std::vector<std::string> sets;  // section.key=value
  bool json = false;              // one object on stdout; everything else goes to stderr
};

/// Reads the YAML file with the overrides of --set and of the options that are short for one.
/// @throws UserError
RunConfig read_run_config(const CommonOptions& options);

struct Command {
  std::string name;
  std::string summary;
  std::vector<std::string>
      sections;  // of the settings it reads, for --help; empty: it takes no --config

  /// Adds the command's own options and returns what to run once they are parsed.
  std::function<std::function<void()>(CLI::App&, const CommonOptions&)> attach;

  bool limits_cache = false;  // it has --cache-mb
};

Command distill_command();
Command train_command();
Command calibrate_command();
Command build_store_command();
Command make_draft_command();
Command generate_command();
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

}  // namespace medusa
