// Options that subcommands share: model, settings file, and short names of settings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/run/run_config.h"

namespace medusa {

class Options;
struct Command;

/// A setting that was given by an option of its own: "--temperature 0.5".
struct GivenSetting {
  std::string option;              // "--temperature"
  std::string key;                 // "generate.temperature"
  std::vector<std::string> texts;  // as typed; several for a list
  bool is_list = false;
};

struct CommonOptions {
  std::string program = "medusa";  // as it was called, for commands to paste
  std::string config;              // YAML file; empty: none
  std::string model;               // empty: the file names it
  std::vector<std::string> sets;   // section.key=value
  std::vector<GivenSetting> settings;
  bool json = false;                       // one object on stdout; everything else goes to stderr
  bool says_run = false;                   // a run folder that nobody named is said
  bool says_next = true;                   // and what comes next
  std::function<void()> before_removal{};  // called before --fresh removes anything; empty: nothing

  /// Sets a setting as its option does, in place of an earlier value.
  void set(const std::string& option, const std::string& key, const std::string& text);
};

/// For a command that reads settings: adds MODEL, --model, --config, --run and --set.
void add_common_options(Options& options, const Command& command, CommonOptions& common);

/// Behind the command's own options: its short names of settings, and --json.
void add_setting_options(Options& options, const Command& command, CommonOptions& common);

/// Keys, defaults and ranges of all settings.
const std::vector<FieldHelp>& all_settings();

/// The settings of the file and the command line. A run folder that nobody named is runs/ and the
/// model's name.
/// @throws UserError  neither names a model; a key or value is wrong; a model that the command line
///                    names is not there.
RunConfig read_run_config(const CommonOptions& options);

/// Refuses --heads and --tree that were typed where no drafter that was named reads them.
/// @param drafters  those that decode, with these settings.
/// @throws UserError  names the option.
void check_parts_are_read(const CommonOptions& options, const std::vector<DrafterKind>& drafters,
                          const InferConfig& settings);

/// "SmolLM2-135M.Q4_1" of models/SmolLM2-135M.Q4_1.gguf, the last folder's name of a folder.
std::string model_name(const std::string& model);

/// Arguments that give another command the same model, settings file and folders; as --set what it
/// has no option for.
/// @param command  and words that belong to it: "dataset merge".
std::vector<std::string> same_run_words(const CommonOptions& options, const std::string& command);

/// A command of the same model, settings file and folders, for the user to paste:
/// "medusa train m.gguf".
/// @param command  and words that belong to it: "dataset merge".
/// @param rest     words behind them, quoted for the shell where they need it.
std::string same_run_command(const CommonOptions& options, const std::string& command,
                             const std::vector<std::string>& rest = {});

/// The same for any command, without more words.
std::function<std::string(const std::string&)> same_run_commands(const CommonOptions& options);

/// What an interrupted command says on stderr.
/// @param fresh  whether it was told to start anew: told so again, it would begin once more.
void print_interrupted(bool fresh);

/// Prints "next: " and the command on stderr.
void print_next(const CommonOptions& options, const std::string& command,
                const std::vector<std::string>& rest = {});

}  // namespace medusa
