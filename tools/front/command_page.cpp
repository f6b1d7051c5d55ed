#include "tools/front/command_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

/// A misspelt option, or a setting without its section.
std::string suggested(const std::string& option, const CommandPage& command,
                      const std::vector<FieldHelp>& settings) {
  std::vector<std::string> names;
  for (const auto& [each, row] : command.names) names.push_back(each);
  if (const std::string close = nearest_word(option, names); !close.empty()) return close;
  std::string setting = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::replace(setting.begin(), setting.end(), '-', '_');
  if (!command.sections.empty())
    for (const FieldHelp& each : settings_of(settings, command.sections))
      if (each.key == setting || each.key.ends_with("." + setting))
        return "--set " + each.key + "=…";
  return "";
}

const OptionRow& row_of(const CommandPage& command, const std::string& option,
                        const std::vector<FieldHelp>& settings) {
  const auto known = command.names.find(option);
  if (known == command.names.end())
    throw UserError(fmt::format(
        "{}: unknown option '{}'{}, expected an option of this command; see medusa {} --help",
        command.name, option, did_you_mean(suggested(option, command, settings)), command.name));
  const auto row = std::find_if(command.rows.begin(), command.rows.end(),
                                [&](const OptionRow& each) { return each.name == known->second; });
  MEDUSA_ASSERT(row != command.rows.end(), known->second);
  return *row;
}

/// @param name  of the option or positional, as typed.
void check_value(const CommandPage& command, const OptionRow& row, const std::string& name,
                 const std::string& text) {
  if (row.choices.empty()) return;
  for (const std::string& word : row.is_list ? list_parts(text) : std::vector<std::string>{text})
    if (std::find(row.choices.begin(), row.choices.end(), word) == row.choices.end())
      throw UserError(
          fmt::format("{} is '{}'{}, expected one of {}; correct it, see medusa {} --help", name,
                      word, did_you_mean(nearest_word(word, row.choices)),
                      fmt::join(row.choices, " | "), command.name));
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FieldHelp, key, value, allowed, help)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OptionRow, name, argument, help, group, choices, is_positional,
                                   is_list, is_repeatable)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandPage, name, summary, details, group, examples, sections,
                                   rows, names)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProgramPages, commands, settings)

nlohmann::json pages_json(const ProgramPages& pages) { return pages; }

ProgramPages read_pages(const std::string& text) {
  return nlohmann::json::parse(text).get<ProgramPages>();
}

std::vector<FieldHelp> settings_of(const std::vector<FieldHelp>& settings,
                                   const std::vector<std::string>& sections) {
  std::vector<FieldHelp> out;
  for (const FieldHelp& each : settings) {
    const std::string section = each.key.substr(0, each.key.find('.'));
    if (section == each.key ||
        std::find(sections.begin(), sections.end(), section) != sections.end())
      out.push_back(each);
  }
  return out;
}

std::vector<std::string> choices_of(const FieldHelp& setting) {
  if (setting.value == "true" || setting.value == "false") return {"true", "false"};
  if (setting.allowed.find(" | ") == std::string::npos) return {};
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= setting.allowed.size();) {
    const size_t end = std::min(setting.allowed.find(" | ", begin), setting.allowed.size());
    out.push_back(setting.allowed.substr(begin, end - begin));
    begin = end + 3;
  }
  return out;
}

std::string did_you_mean(const std::string& close) {
  return close.empty() ? "" : " (did you mean '" + close + "'?)";
}

void refuse_command(const std::string& name, const std::vector<std::string>& names) {
  throw UserError(fmt::format("unknown subcommand '{}'{}, expected one of {}; see medusa --help",
                              name, did_you_mean(nearest_word(name, names)),
                              fmt::join(names, ", ")));
}

std::vector<std::string> list_parts(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

void check_words(const CommandPage& command, const std::vector<FieldHelp>& settings,
                 const std::vector<std::string>& arguments) {
  std::vector<const OptionRow*> positionals;
  for (const OptionRow& row : command.rows)
    if (row.is_positional) positionals.push_back(&row);
  std::set<std::string> given;
  size_t place = 0;
  bool options_end = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (options_end || argument.size() < 2 || argument[0] != '-') {
      if (place < positionals.size()) {
        const OptionRow& row = *positionals[place++];
        check_value(command, row, row.name, argument);
      }
    } else if (argument == "--") {
      options_end = true;
    } else {
      const std::string name = argument.substr(0, argument.find('='));
      const OptionRow& row = row_of(command, name, settings);
      if (row.argument.empty()) continue;  // a flag, which may well be repeated
      if (!given.insert(row.name).second && !row.is_repeatable)
        throw UserError(
            fmt::format("{}: {} is given twice, expected once; remove one, see medusa {} --help",
                        command.name, name, command.name));
      const bool is_one_word = name.size() < argument.size();
      if (!is_one_word && ++i == arguments.size())
        throw UserError(
            fmt::format("{}: {} has no value, expected {} behind it; see medusa {} --help",
                        command.name, name, row.argument, command.name));
      check_value(command, row, name,
                  is_one_word ? argument.substr(name.size() + 1) : arguments[i]);
    }
  }
}

}  // namespace medusa
