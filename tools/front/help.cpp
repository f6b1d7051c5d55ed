#include "tools/front/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace medusa {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kNames = 24;      // where the text beside a name begins
constexpr size_t kPartLines = 39;  // of a part of settings, with its title a screen

/// Columns that a text takes on a terminal: bytes that begin a character.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

/// A text in lines, each after the first behind `indent` spaces.
/// @param used  columns that are taken on the first line.
std::string wrapped(const std::string& text, size_t used, size_t indent) {
  std::string out;
  size_t column = used;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (column > indent && column + 1 + width(word) > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (begin > 0) {
      out += " ";
      ++column;
    }
    out += word;
    column += width(word);
    begin = end + 1;
  }
  return out + "\n";
}

/// "  --name N       text", the text on a line of its own where the name is too long.
std::string entry(const std::string& name, const std::string& text, size_t names) {
  std::string out = "  " + name;
  if (out.size() + 1 > names)
    out += "\n" + std::string(names, ' ');
  else
    out += std::string(names - out.size(), ' ');
  return out + wrapped(text, names, names);
}

std::string usage(const CommandPage& command) {
  std::string out = "usage: medusa " + command.name;
  for (const OptionRow& row : command.rows)
    if (row.is_positional) out += " " + row.name;
  return out + " [options]\n";
}

/// Its names in the order of --help, each once.
std::vector<std::string> groups_of(const std::vector<OptionRow>& rows) {
  std::vector<std::string> out;
  for (const OptionRow& row : rows)
    if (!row.is_positional && std::find(out.begin(), out.end(), row.group) == out.end())
      out.push_back(row.group);
  return out;
}

/// "train.heads" of train.heads.input, "" of seed.
std::string section_of(const std::string& key) {
  const size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

}  // namespace

std::string program_help(const std::vector<CommandPage>& commands) {
  std::string text =
      "medusa: faster text from a language model, by decoding heads trained on its own text\n\n"
      "usage: medusa COMMAND [MODEL] [options]\n";
  std::string group;
  for (const CommandPage& command : commands) {
    if (command.group != group) text += "\n" + command.group + "\n";
    group = command.group;
    text += entry(command.name, command.summary, 16);
  }
  text +=
      "\nExamples\n"
      "  medusa generate model.gguf \"What is gravity?\"\n"
      "  medusa run model.gguf                # makes heads for it, and compares\n"
      "\nmedusa help COMMAND [all]: its options [and settings]. medusa help all: every setting.\n"
      "medusa --version: which build this is, and what it computes with.\n";
  return text;
}

std::string command_help(const CommandPage& command) {
  const std::vector<OptionRow>& rows = command.rows;
  std::string text = fmt::format("medusa {}: {}\n", command.name, command.summary);
  if (!command.details.empty()) text += wrapped(command.details, 0, 0);
  text += "\n" + usage(command);
  for (const OptionRow& row : rows)
    if (row.is_positional) text += entry(row.name, row.help, kNames);
  for (const std::string& group : groups_of(rows)) {
    text += group + "\n";
    for (const OptionRow& row : rows)
      if (!row.is_positional && row.group == group)
        text +=
            entry(row.name + (row.argument.empty() ? "" : " " + row.argument), row.help, kNames);
  }
  if (!command.examples.empty()) text += "Examples\n";
  for (const std::string& example : command.examples)
    text += (example.starts_with(command.name + " ") ? "  medusa " : "  ") + example + "\n";
  if (!command.sections.empty())
    text += fmt::format("medusa help {} all: every setting with default and range\n", command.name);
  return text;
}

std::string settings_help(const std::vector<FieldHelp>& settings) {
  std::string text, section = "-";
  size_t lines = 0;
  for (const FieldHelp& each : settings) {
    const std::string key = each.key + ": " + (each.value.empty() ? "(required)" : each.value);
    const std::string help = each.help + (each.allowed.empty() ? "" : " [" + each.allowed + "]");
    const std::string added = entry(key, help, 40);
    const auto more = static_cast<size_t>(std::count(added.begin(), added.end(), '\n'));
    const std::string own = section_of(each.key);
    const bool full = lines + more > kPartLines;
    if (own != section || full) {
      const std::string title = own.empty() ? "of the run" : own;
      text += fmt::format("\nSettings: {}{}\n", title, own == section ? ", continued" : "");
      lines = 0;
    }
    section = own;
    lines += more;
    text += added;
  }
  return text;
}

}  // namespace medusa
