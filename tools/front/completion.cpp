#include "tools/front/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

/// Words stand bare between quotes in the scripts: nothing a shell would expand may be in them.
const std::string& plain_word(const std::string& word) {
  for (const char c : word)
    MEDUSA_ASSERT((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.',
                  word);
  return word;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + plain_word(word);
  return out;
}

bool is_path(const OptionRow& row) {
  for (const char* kind : {"FILE", "FOLDER", "PATH", "MODEL", "HEADS"})
    if (row.argument == kind) return true;
  return false;
}

/// What the values of an option or positional are: "words", "file", "setting" or "any".
std::string kind_of_value(const OptionRow& row) {
  if (!row.choices.empty()) return "words";
  if (row.name == "--set") return "setting";
  return is_path(row) ? "file" : "any";
}

std::string replaced(std::string text, std::string_view mark, const std::string& with) {
  const size_t at = text.find(mark);
  MEDUSA_ASSERT(at != std::string::npos, mark);
  return text.replace(at, mark.size(), with);
}

std::vector<std::string> names_of(const std::vector<CommandPage>& commands) {
  std::vector<std::string> out;
  for (const CommandPage& command : commands) out.push_back(command.name);
  return out;
}

// ---- bash and zsh, which reads bash's script

std::string bash_options(const std::vector<CommandPage>& commands) {
  std::string cases;
  for (const CommandPage& command : commands) {
    std::vector<std::string> options{"--help"}, positional_words;
    bool files = false;
    for (const OptionRow& row : command.rows)
      if (!row.is_positional)
        options.push_back(row.name);
      else if (row.choices.empty())
        files = files || is_path(row);
      else
        positional_words.insert(positional_words.end(), row.choices.begin(), row.choices.end());
    cases += fmt::format("    {}) options='{}' words='{}' files={} ;;\n", plain_word(command.name),
                         joined(options), joined(positional_words), files ? "1" : "''");
  }
  return cases;
}

/// The options of all commands that take a value: of one name the values are the same but for the
/// command, which stands before it.
std::string bash_values(const std::vector<CommandPage>& commands) {
  std::string cases;
  for (const CommandPage& command : commands)
    for (const OptionRow& row : command.rows) {
      if (row.is_positional || row.argument.empty()) continue;
      cases += fmt::format("    {}/{}) kind={} choices='{}' list={} ;;\n", plain_word(command.name),
                           plain_word(row.name), kind_of_value(row), joined(row.choices),
                           row.is_list ? "1" : "''");
    }
  return cases;
}

std::string bash_settings(const std::vector<FieldHelp>& settings) {
  std::string cases;
  for (const FieldHelp& setting : settings)
    if (const auto choices = choices_of(setting); !choices.empty())
      cases += fmt::format("    {}) choices='{}' ;;\n", plain_word(setting.key), joined(choices));
  return cases;
}

std::vector<std::string> keys_of(const std::vector<FieldHelp>& settings) {
  std::vector<std::string> out;
  for (const FieldHelp& setting : settings) out.push_back(setting.key);
  return out;
}

// Bash splits words at '=' before it asks: 'train.seed=1' arrives as 'train.seed', '=', '1'.
constexpr const char* kBash = R"sh(# bash completion of medusa; made by: medusa completion bash
_medusa_settings='@KEYS@'

_medusa_setting_values() {
  local choices=''
  case "$1" in
@SETTINGS@  esac
  COMPREPLY=($(compgen -W "$choices" -- "$2"))
}

_medusa_files() {
  mapfile -t COMPREPLY < <(compgen -f -- "$1") # a name may have spaces
  compopt -o filenames 2>/dev/null
}

_medusa_value() {
  local kind='' choices='' list=''
  case "$1" in
@VALUES@    *) return 1 ;;
  esac
  case "$kind" in
    words)
      local before=''
      if [[ -n $list && $2 == *,* ]]; then before="${2%,*},"; fi
      COMPREPLY=($(compgen -P "$before" -W "$choices" -- "${2##*,}")) ;;
    file) _medusa_files "$2" ;;
    setting)
      COMPREPLY=($(compgen -S = -W "$_medusa_settings" -- "$2"))
      compopt -o nospace 2>/dev/null ;;
  esac
  return 0
}

_medusa() {
  local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}"
  local options='' words='' files=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '@COMMANDS@ help --help --version' -- "$current"))
    return
  fi
  if [[ $command == help ]]; then
    if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W '@COMMANDS@' -- "$current")); fi
    if ((COMP_CWORD == 3)); then COMPREPLY=($(compgen -W 'all' -- "$current")); fi
    return
  fi
  case "$command" in
@OPTIONS@  esac

  # The word that the current one belongs to, looking back over key = value.
  local before="${COMP_WORDS[COMP_CWORD-1]}" key=''
  if [[ $current == '=' ]]; then
    key="$before" before="${COMP_WORDS[COMP_CWORD-2]}" current=''
  elif [[ $before == '=' ]]; then
    key="${COMP_WORDS[COMP_CWORD-2]}" before="${COMP_WORDS[COMP_CWORD-3]}"
  fi
  if [[ -n $key && $before == --set ]]; then
    _medusa_setting_values "$key" "$current"
    return
  fi
  if [[ -n $key ]]; then before="$key"; fi # --option=value
  if _medusa_value "$command/$before" "$current"; then return; fi
  if [[ $current == -* || ( -z $words && -z $files ) ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $words ]] && ((COMP_CWORD == 2)); then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ -n $files ]]; then
    _medusa_files "$current"
  fi
}

complete -F _medusa medusa
)sh";

std::string bash_completion(const std::vector<CommandPage>& commands,
                            const std::vector<FieldHelp>& settings) {
  std::string script = replaced(kBash, "@KEYS@", joined(keys_of(settings)));
  script = replaced(std::move(script), "@SETTINGS@", bash_settings(settings));
  script = replaced(std::move(script), "@VALUES@", bash_values(commands));
  script = replaced(std::move(script), "@COMMANDS@", joined(names_of(commands)));
  script = replaced(std::move(script), "@COMMANDS@", joined(names_of(commands)));
  return replaced(std::move(script), "@OPTIONS@", bash_options(commands));
}

// ---- zsh

/// A text between single quotes, in which ':' and brackets mean something.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c;
  return out;
}

std::string zsh_action(const OptionRow& row) {
  const std::string kind = kind_of_value(row);
  if (kind == "words")
    return row.is_list ? "_sequence -s , compadd - " + joined(row.choices)
                       : "(" + joined(row.choices) + ")";
  if (kind == "setting") return "_medusa_setting";
  return kind == "file" ? "_files" : " ";
}

std::string zsh_arguments(const CommandPage& command) {
  std::string out = "        '--help[what the options are]'";
  int place = 1;
  for (const OptionRow& row : command.rows) {
    out += " \\\n        '";
    if (row.is_positional)
      out += fmt::format("{}::{}:{}", place++, zsh_text(row.name), zsh_action(row));
    else if (row.argument.empty())
      out += fmt::format("{}[{}]", plain_word(row.name), zsh_text(row.help));
    else
      out += fmt::format("{}{}=[{}]:{}:{}", row.name == "--set" ? "*" : "", plain_word(row.name),
                         zsh_text(row.help), zsh_text(row.argument), zsh_action(row));
    out += "'";
  }
  return out;
}

constexpr const char* kZsh = R"sh(#compdef medusa
# zsh completion of medusa; made by: medusa completion zsh
_medusa_setting() {
  if compset -P 1 '*='; then
    case "${IPREFIX%=}" in
@SETTINGS@    esac
  else
    compadd -S = -- @KEYS@
  fi
}

_medusa() {
  if ((CURRENT == 2)); then
    local -a commands=(
@COMMANDS@    )
    _describe command commands
    return
  fi
  local command="$words[2]"
  shift words
  ((CURRENT--))
  case "$command" in
    help) _values command @NAMES@ ;;
@OPTIONS@  esac
}

if [[ $funcstack[1] == _medusa ]]; then _medusa "$@"; else compdef _medusa medusa; fi
)sh";

std::string zsh_completion(const std::vector<CommandPage>& commands,
                           const std::vector<FieldHelp>& settings) {
  std::string names = "      'help:explain a command'\n", options, values;
  for (const CommandPage& command : commands) {
    names += fmt::format("      '{}:{}'\n", plain_word(command.name), zsh_text(command.summary));
    options +=
        fmt::format("    {})\n      _arguments \\\n{} ;;\n", command.name, zsh_arguments(command));
  }
  for (const FieldHelp& setting : settings)
    if (const auto choices = choices_of(setting); !choices.empty())
      values +=
          fmt::format("      *{}) compadd -- {} ;;\n", plain_word(setting.key), joined(choices));
  std::string script = replaced(kZsh, "@SETTINGS@", values);
  script = replaced(std::move(script), "@KEYS@", joined(keys_of(settings)));
  script = replaced(std::move(script), "@COMMANDS@", names);
  script = replaced(std::move(script), "@NAMES@", joined(names_of(commands)));
  return replaced(std::move(script), "@OPTIONS@", options);
}

// ---- fish

/// A text between single quotes.
std::string fish_text(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

std::string fish_completion(const std::vector<CommandPage>& commands,
                            const std::vector<FieldHelp>& settings) {
  std::string out =
      "# fish completion of medusa; made by: medusa completion fish\n"
      "complete -c medusa -f\n"
      "complete -c medusa -n __fish_use_subcommand -l help -d 'list the commands'\n"
      "complete -c medusa -n __fish_use_subcommand -l version -d 'say which build this is'\n"
      "complete -c medusa -n __fish_use_subcommand -a help -d 'explain a command'\n"
      "complete -c medusa -n '__fish_seen_subcommand_from help' -a '" +
      joined(names_of(commands)) + "'\n";
  std::string pairs;  // of settings: "key=" alone, or each "key=value"
  for (const FieldHelp& setting : settings) {
    const auto choices = choices_of(setting);
    if (choices.empty()) pairs += " " + plain_word(setting.key) + "=";
    for (const std::string& choice : choices)
      pairs += " " + plain_word(setting.key) + "=" + plain_word(choice);
  }
  for (const CommandPage& command : commands) {
    out += fmt::format("complete -c medusa -n __fish_use_subcommand -a {} -d '{}'\n",
                       plain_word(command.name), fish_text(command.summary));
    const std::string within =
        fmt::format("complete -c medusa -n '__fish_seen_subcommand_from {}'", command.name);
    for (const OptionRow& row : command.rows) {
      if (row.is_positional) {
        if (!row.choices.empty())
          out += fmt::format("{} -a '{}'\n", within, joined(row.choices));
        else if (is_path(row))
          out += within + " -F\n";
        continue;
      }
      out += fmt::format("{} -l {} -d '{}'", within, plain_word(row.name).substr(2),
                         fish_text(row.help));
      const std::string kind = kind_of_value(row);
      if (row.argument.empty())
        out += "\n";
      else if (kind == "words")
        out += fmt::format(" -x -a '{}'\n", joined(row.choices));
      else if (kind == "setting")
        out += fmt::format(" -x -a '{}'\n", pairs.substr(1));
      else
        out += kind == "file" ? " -r -F\n" : " -x\n";
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const std::string& shell, const ProgramPages& pages) {
  if (shell == "bash") return bash_completion(pages.commands, pages.settings);
  if (shell == "zsh") return zsh_completion(pages.commands, pages.settings);
  if (shell == "fish") return fish_completion(pages.commands, pages.settings);
  throw UserError(fmt::format(
      "completion: unknown shell '{}', expected bash, zsh or fish; use one of these", shell));
}

}  // namespace medusa
