#include "tools/front/at_once.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/output.h"
#include "tools/front/completion.h"
#include "tools/front/help.h"

namespace medusa {
namespace {

bool asks_for_help(const std::string& argument) { return argument == "--help" || argument == "-h"; }

[[noreturn]] void refuse_nothing(const ProgramPages& pages) {
  std::vector<std::string> names;
  for (const CommandPage& each : pages.commands) names.push_back(each.name);
  throw UserError(
      fmt::format("no subcommand given, expected medusa COMMAND, one of {}; see medusa --help",
                  fmt::join(names, ", ")));
}

std::string help_of(const CommandPage& command, bool all, const ProgramPages& pages) {
  std::string text = command_help(command);
  if (all && !command.sections.empty())
    text += settings_help(settings_of(pages.settings, command.sections));
  return text;
}

/// What may stand behind a command whose help is asked for: nothing, or "all".
bool asks_for_all(std::span<const std::string> rest) {
  if (rest.empty()) return false;
  if (rest.size() == 1 && rest[0] == "all") return true;
  throw UserError(
      fmt::format("help: found '{}' behind the command, expected 'all' or nothing; see medusa help",
                  rest[rest.size() > 1 && rest[0] == "all" ? 1 : 0]));
}

/// `medusa help`, `medusa help all`, `medusa help COMMAND`, `medusa help COMMAND all`, `medusa help
/// --json`.
void answer_help(const std::vector<std::string>& words, const ProgramPages& pages) {
  if (words.empty())
    print_text("{}", program_help(pages.commands));
  else if (words[0] == "--json")
    print_json(pages_json(pages));
  else if (words[0] == "all" && !asks_for_all(std::span(words).subspan(1)))
    print_text("{}{}", program_help(pages.commands), settings_help(pages.settings));
  else
    print_text("{}", help_of(command_of(pages.commands, words[0]),
                             asks_for_all(std::span(words).subspan(1)), pages));
}

}  // namespace

bool answer_at_once(const std::vector<std::string>& arguments, const ProgramPages& pages) {
  if (arguments.empty()) refuse_nothing(pages);
  const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "help" || asks_for_help(arguments[0])) {
    answer_help(words, pages);
    return true;
  }
  if (arguments[0] == "--version") return false;
  const CommandPage& command = command_of(pages.commands, arguments[0]);
  const auto options_end = std::find(words.begin(), words.end(), "--");
  const auto asked = std::find_if(words.begin(), options_end, asks_for_help);
  if (asked != options_end) {
    const auto options = std::find_if(
        asked + 1, options_end, [](const std::string& word) { return word.starts_with("-"); });
    print_text("{}", help_of(command, asks_for_all({asked + 1, options}), pages));
    return true;
  }
  check_words(command, pages.settings, words);
  if (command.name != "completion" || words.size() != 1) return false;
  print_text("{}", completion_script(words[0], pages));
  return true;
}

}  // namespace medusa
