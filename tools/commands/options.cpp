#include "tools/commands/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

std::string first_name(const std::string& names) { return names.substr(0, names.find(',')); }

std::string did_you_mean(const std::string& close) {
  return close.empty() ? "" : " (did you mean '" + close + "'?)";
}

}  // namespace

struct Options::Parser {
  CLI::App app;
};

Options::Options(std::string command)
    : command_(std::move(command)), parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag();  // help is asked for before anything is parsed
  parser_->app.allow_extras();   // what is too much is refused in our words
}

Options::~Options() = default;

void Options::add(OptionRow row, const std::string& name, const Take& take) {
  row.name = first_name(name);
  row.group = group_;
  parser_->app.add_option_function<std::string>(name, take)->type_name(row.argument);
  for (const std::string& each : parts(name)) names_[each] = true;
  rows_.push_back(std::move(row));
}

void Options::flag(const std::string& name, bool& value, const std::string& help) {
  parser_->app.add_flag(name, value);
  names_[name] = false;
  rows_.push_back(
      {.name = first_name(name), .argument = "", .help = help, .group = group_, .choices = {}});
}

void Options::text(const std::string& name, const std::string& argument, const std::string& help,
                   const Take& take, std::vector<std::string> choices) {
  OptionRow row;
  row.argument = argument;
  row.help = help;
  row.choices = std::move(choices);
  add(std::move(row), name, take);
}

void Options::repeatable(const std::string& name, const std::string& argument,
                         const std::string& help, const Take& take,
                         std::vector<std::string> choices) {
  parser_->app
      .add_option_function<std::vector<std::string>>(name,
                                                     [take](const std::vector<std::string>& texts) {
                                                       for (const std::string& each : texts)
                                                         take(each);
                                                     })
      ->type_name(argument)
      ->expected(1)
      ->take_all();
  names_[name] = true;
  rows_.push_back({.name = first_name(name),
                   .argument = argument,
                   .help = help,
                   .group = group_,
                   .choices = std::move(choices)});
}

void Options::positional(const std::string& name, std::string& value, const std::string& help,
                         bool required, std::vector<std::string> choices) {
  parser_->app.add_option(name, value)->required(required);
  rows_.push_back({.name = name,
                   .argument = name,
                   .help = help,
                   .group = "",
                   .choices = std::move(choices),
                   .is_positional = true});
}

void Options::positionals(const std::string& name, std::vector<std::string>& values,
                          const std::string& help) {
  parser_->app.add_option(name, values);
  rows_.push_back({.name = name,
                   .argument = name,
                   .help = help,
                   .group = "",
                   .choices = {},
                   .is_positional = true});
}

void Options::require(const std::string& name) { parser_->app.get_option(name)->required(); }

void Options::exclude(const std::string& one, const std::string& other) {
  parser_->app.get_option(one)->excludes(parser_->app.get_option(other));
}

void Options::refuse(const std::string& name, const std::string& text, const std::string& expected,
                     const std::vector<std::string>& words) const {
  throw UserError(fmt::format("{} is '{}'{}, expected {}; correct it, see medusa {} --help",
                              first_name(name), text, did_you_mean(nearest_word(text, words)),
                              expected, command_));
}

std::vector<std::string> Options::parts(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::string Options::suggestion(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [each, takes_value] : names_) names.push_back(each);
  if (const std::string close = nearest_word(name, names); !close.empty())
    return did_you_mean(close);
  std::string setting = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::replace(setting.begin(), setting.end(), '-', '_');
  for (const std::string& key : keys_)
    if (key == setting || key.ends_with("." + setting)) return did_you_mean("--set " + key + "=…");
  return "";
}

/// Before CLI11 looks for what is missing: a misspelt name is the likelier cause.
void Options::check_names(const std::vector<std::string>& arguments) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") return;
    if (argument.size() < 2 || argument[0] != '-') continue;
    const std::string name = argument.substr(0, argument.find('='));
    const auto known = names_.find(name);
    if (known == names_.end())
      throw UserError(
          fmt::format("{}: unknown option '{}'{}, expected one of its own; see medusa "
                      "{} --help",
                      command_, name, suggestion(name), command_));
    if (known->second && name == argument) ++i;  // its value, whatever that begins with
  }
}

void Options::parse(const std::vector<std::string>& arguments) {
  check_names(arguments);
  try {
    // CLI11 wants them reversed.
    parser_->app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw UserError(fmt::format("{}: {}; see medusa {} --help", command_, error.what(), command_));
  }
  const std::vector<std::string> left = parser_->app.remaining();
  if (!left.empty())
    throw UserError(fmt::format(
        "{}: found '{}' too much, expected no more arguments without a name; put quotes around a "
        "text with spaces, see medusa {} --help",
        command_, left.front(), command_));
}

}  // namespace medusa
