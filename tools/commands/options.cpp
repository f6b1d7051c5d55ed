#include "tools/commands/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/error.h"

namespace medusa {
namespace {

std::string first_name(const std::string& names) { return list_parts(names).front(); }

}  // namespace

struct Options::Parser {
  CLI::App app;
};

Options::Options(CommandPage page, std::vector<FieldHelp> settings)
    : page_(std::move(page)), settings_(std::move(settings)), parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag();  // help is asked for before anything is parsed
  parser_->app.allow_extras();   // what is too much is refused in our words
}

Options::~Options() = default;

Options::Take Options::checked(const std::string& name, const std::string& argument,
                               const Take& take) const {
  if (argument != "FILE" && argument != "FOLDER" && argument != "PATH") return take;
  return [this, name, take](const std::string& text) {
    if (text.empty()) refuse(name, text, "the name of a file or folder");
    take(text);
  };
}

void Options::add(OptionRow row, const std::string& name, const Take& take) {
  row.name = first_name(name);
  row.group = group_;
  parser_->app.add_option_function<std::string>(name, checked(name, row.argument, take))
      ->type_name(row.argument);
  for (const std::string& each : list_parts(name)) page_.names[each] = row.name;
  page_.rows.push_back(std::move(row));
}

void Options::flag(const std::string& name, bool& value, const std::string& help) {
  parser_->app.add_flag(name, value);
  page_.names[name] = name;
  page_.rows.push_back(
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
      .add_option_function<std::vector<std::string>>(
          name,
          [one = checked(name, argument, take)](const std::vector<std::string>& texts) {
            for (const std::string& each : texts) one(each);
          })
      ->type_name(argument)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);  // what follows the value is the command's, also "[a,b]"
  page_.names[name] = name;
  page_.rows.push_back({.name = first_name(name),
                        .argument = argument,
                        .help = help,
                        .group = group_,
                        .choices = std::move(choices),
                        .is_repeatable = true});
}

void Options::positional(const std::string& name, std::string& value, const std::string& help,
                         bool required, std::vector<std::string> choices) {
  parser_->app.add_option(name, value)->required(required);
  page_.rows.push_back({.name = name,
                        .argument = name,
                        .help = help,
                        .group = "",
                        .choices = std::move(choices),
                        .is_positional = true});
}

void Options::positionals(const std::string& name, std::vector<std::string>& values,
                          const std::string& help) {
  parser_->app.add_option(name, values);
  page_.rows.push_back({.name = name,
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

void Options::refuse(const std::string& name, const std::string& text,
                     const std::string& expected) const {
  throw UserError(fmt::format("{} is '{}', expected {}; correct it, see medusa {} --help",
                              first_name(name), text, expected, page_.name));
}

void Options::parse(const std::vector<std::string>& arguments) {
  // Before CLI11 looks for what is missing: a misspelt name is the likelier cause.
  check_words(page_, settings_, arguments);
  try {
    // CLI11 wants them reversed.
    parser_->app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw UserError(
        fmt::format("{}: {}; see medusa {} --help", page_.name, error.what(), page_.name));
  }
  const std::vector<std::string> left = parser_->app.remaining();
  if (!left.empty())
    throw UserError(fmt::format(
        "{}: found '{}' too much, expected no more arguments without a name; put quotes around a "
        "text with spaces, see medusa {} --help",
        page_.name, left.front(), page_.name));
}

}  // namespace medusa
