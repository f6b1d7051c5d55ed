#include "tools/chat/slash_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "tools/front/command_page.h"

namespace medusa {
namespace {

enum class Argument { None, Optional, Needed };

struct SlashRow {
  SlashCommand command;
  const char* name;
  Argument takes;
  const char* argument;  // as help writes it
  const char* help;
};

constexpr SlashRow kSlashRows[] = {
    {SlashCommand::System, "/system", Argument::Optional, "[TEXT]",
     "the system message from now on; without TEXT: none"},
    {SlashCommand::Regen, "/regen", Argument::None, "",
     "answer the last message again, sampled with the next seed"},
    {SlashCommand::Undo, "/undo", Argument::None, "", "take the last message and its answer back"},
    {SlashCommand::Save, "/save", Argument::Needed, "FILE", "write the conversation as JSON"},
    {SlashCommand::Load, "/load", Argument::Needed, "FILE", "go on with a saved one"},
    {SlashCommand::Drafter, "/drafter", Argument::Optional, "[NAME]",
     "who proposes tokens from now on; without NAME: says who does"},
    {SlashCommand::Temperature, "/temperature", Argument::Needed, "X",
     "of sampling from now on; 0: the most probable text"},
    {SlashCommand::Seed, "/seed", Argument::Needed, "N", "of what is sampled from now on"},
    {SlashCommand::Stats, "/stats", Argument::None, "",
     "tokens, tokens per step and room in the context"},
    {SlashCommand::Help, "/help", Argument::None, "", "this list"},
    {SlashCommand::Quit, "/quit", Argument::None, "", "leave, as Ctrl-D does"},
};

constexpr std::string_view kSpaces = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

const SlashRow& slash_row(const std::string& name) {
  std::vector<std::string> names;
  for (const SlashRow& row : kSlashRows) {
    if (name == row.name) return row;
    names.emplace_back(row.name);
  }
  throw UserError(
      fmt::format("unknown command '{}'{}, expected one that /help lists; a message that begins "
                  "with / stands between lines of \"\"\"",
                  name, did_you_mean(nearest_word(name, names))));
}

}  // namespace

std::optional<GivenSlashCommand> read_slash_command(std::string_view line) {
  if (!line.starts_with('/')) return std::nullopt;
  const size_t space = std::min(line.find_first_of(kSpaces), line.size());
  const SlashRow& row = slash_row(std::string(line.substr(0, space)));
  const std::string argument(trimmed(line.substr(space)));
  if (row.takes == Argument::Needed && argument.empty())
    throw UserError(
        fmt::format("{0}: found nothing behind it, expected {1}; type {0} {1}, or /help", row.name,
                    row.argument));
  if (row.takes == Argument::None && !argument.empty())
    throw UserError(fmt::format("{}: found '{}' behind it, expected nothing; leave it out",
                                row.name, argument));
  return GivenSlashCommand{row.command, argument};
}

std::string slash_help() {
  std::string text;
  for (const SlashRow& row : kSlashRows)
    text += fmt::format("  {:<16} {}\n", fmt::format("{} {}", row.name, row.argument), row.help);
  return text +
         "  \"\"\"              begins a message of several lines, and \"\"\" at the end of a line "
         "ends it\n"
         "  Ctrl-C           stops an answer, or clears what is typed; Ctrl-D leaves\n";
}

}  // namespace medusa
