#include "tools/commands/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace medusa {
namespace {

/// Words stand bare between quotes in the script: nothing the shell would expand may be in them.
const std::string& plain_word(const std::string& word) {
  for (const char c : word)
    MEDUSA_ASSERT((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.',
                  word);
  return word;
}

void append_word(std::string& words, const std::string& word) {
  words += (words.empty() ? "" : " ") + plain_word(word);
}

std::string command_words(const std::vector<CommandHelp>& commands) {
  std::string words;
  for (const CommandHelp& command : commands) append_word(words, command.name);
  return words;
}

std::string option_cases(const std::vector<CommandHelp>& commands) {
  std::string cases;
  for (const CommandHelp& command : commands) {
    std::string words, with_value;
    for (const OptionHelp& option : command.options) {
      append_word(words, option.name);
      if (option.takes_value) append_word(with_value, option.name);
    }
    cases +=
        fmt::format("    {}) options='{}' with_value='{}' ;;\n", command.name, words, with_value);
  }
  return cases;
}

std::string key_words(const std::vector<SettingHelp>& settings) {
  std::string words;
  for (const SettingHelp& setting : settings) append_word(words, setting.key);
  return words;
}

std::string choice_cases(const std::vector<SettingHelp>& settings) {
  std::string cases;
  for (const SettingHelp& setting : settings) {
    if (setting.choices.empty()) continue;
    std::string words;
    for (const std::string& choice : setting.choices) append_word(words, choice);
    cases += fmt::format("    {}) choices='{}' ;;\n", plain_word(setting.key), words);
  }
  return cases;
}

// Bash splits words at '=' before it asks: 'train.seed=1' arrives as 'train.seed', '=', '1'.
constexpr const char* kScript = R"sh(# bash completion of medusa; made by: medusa completion bash
_medusa_settings='@KEYS@'

_medusa_choices() {
  local choices=''
  case "$1" in
@CHOICES@  esac
  COMPREPLY=($(compgen -W "$choices" -- "$2"))
}

_medusa() {
  local current="${COMP_WORDS[COMP_CWORD]}"
  local options='' with_value=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '@COMMANDS@ --help' -- "$current"))
    return
  fi
  case "${COMP_WORDS[1]}" in
@OPTIONS@  esac

  # The word that the current one belongs to, looking back over key = value.
  local before="${COMP_WORDS[COMP_CWORD-1]}" key=''
  if [[ $current == '=' ]]; then
    key="$before" before="${COMP_WORDS[COMP_CWORD-2]}" current=''
  elif [[ $before == '=' ]]; then
    key="${COMP_WORDS[COMP_CWORD-2]}" before="${COMP_WORDS[COMP_CWORD-3]}"
  fi

  case "$before" in
    --set)
      if [[ -n $key ]]; then
        _medusa_choices "$key" "$current"
      else
        COMPREPLY=($(compgen -S = -W "$_medusa_settings" -- "$current"))
        compopt -o nospace 2>/dev/null
      fi
      return ;;
    --device|--dtype)
      _medusa_choices "backbone.${before#--}" "$current"
      return ;;
  esac
  [[ -n $key ]] && return
  if [[ " $with_value " == *" $before "* ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ ${COMP_WORDS[1]} == completion ]]; then
    COMPREPLY=($(compgen -W 'bash' -- "$current"))
  elif [[ ${COMP_WORDS[1]} == inspect ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  else
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  fi
}

complete -F _medusa medusa
)sh";

void replace(std::string& text, std::string_view mark, const std::string& with) {
  const size_t at = text.find(mark);
  MEDUSA_ASSERT(at != std::string::npos, mark);
  text.replace(at, mark.size(), with);
}

}  // namespace

std::string bash_completion(const std::vector<CommandHelp>& commands,
                            const std::vector<SettingHelp>& settings) {
  std::string script = kScript;
  replace(script, "@KEYS@", key_words(settings));
  replace(script, "@CHOICES@", choice_cases(settings));
  replace(script, "@COMMANDS@", command_words(commands));
  replace(script, "@OPTIONS@", option_cases(commands));
  return script;
}

}  // namespace medusa
