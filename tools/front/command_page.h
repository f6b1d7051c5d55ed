// The commands as --help, completion and the check of names read them: what can be said without
// running one. No LibTorch.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/fields.h"

namespace medusa {

/// One option or positional.
struct OptionRow {
  std::string name;      // "--config"; of a positional its argument, "MODEL"
  std::string argument;  // "FILE"; empty: a flag. FILE, FOLDER, PATH, MODEL, HEADS: a path
  std::string help;
  std::string group;                 // title of the part of --help
  std::vector<std::string> choices;  // what it may be; empty: anything
  bool is_positional = false;
  bool is_list = false;        // several values with commas between them
  bool is_repeatable = false;  // may be given several times
};

struct CommandPage {
  std::string name, summary;
  std::string details;                       // a paragraph below it
  std::string group;                         // under which medusa --help lists it
  std::vector<std::string> examples;         // without "medusa ", or whole lines for the shell
  std::vector<std::string> sections;         // of the settings it reads
  std::vector<OptionRow> rows;               // in the order of --help
  std::map<std::string, std::string> names;  // of options, older ones too -> that of the row
};

struct ProgramPages {
  std::vector<CommandPage> commands;  // in the order of --help
  std::vector<FieldHelp> settings;
};

/// What `medusa help --json` prints.
nlohmann::json pages_json(const ProgramPages& pages);
/// @param text  pages_json() as text.
ProgramPages read_pages(const std::string& text);

/// Settings of these sections, and those of none.
std::vector<FieldHelp> settings_of(const std::vector<FieldHelp>& settings,
                                   const std::vector<std::string>& sections);

/// "auto | cpu | cuda" -> its words; empty for anything that is not a choice.
std::vector<std::string> choices_of(const FieldHelp& setting);

/// " (did you mean 'train'?)"; empty when nothing is close.
std::string did_you_mean(const std::string& close);

/// @throws UserError  always: the nearest of the names is said.
[[noreturn]] void refuse_command(const std::string& name, const std::vector<std::string>& names);

/// The command of this name.
/// @throws UserError  there is none; the nearest name is said.
template <typename Named>
const Named& command_of(const std::vector<Named>& all, const std::string& name) {
  std::vector<std::string> names;
  for (const Named& each : all) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  refuse_command(name, names);
}

/// "a,b" -> its parts; one, though empty, of an empty text.
std::vector<std::string> list_parts(const std::string& text);

/// Looks for options that the command has not, and for values that are none of an option's words.
/// @param settings   a misspelt option may have meant one: "train.epochs" for --epochs.
/// @param arguments  without the program's and the command's name.
/// @throws UserError  says the nearest.
void check_words(const CommandPage& command, const std::vector<FieldHelp>& settings,
                 const std::vector<std::string>& arguments);

}  // namespace medusa
