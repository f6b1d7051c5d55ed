#include "tools/commands/common_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/output.h"
#include "base/shown_text.h"
#include "base/yaml_fields.h"
#include "infer/factory.h"
#include "runtime/model.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// An option that is short for a setting.
struct SettingOption {
  const char* name;
  const char* key;  // '@': the command's section of sampling, generate or distill
  const char* argument;
  const char* group;
  const char* help;
  bool is_list = false;
};

constexpr const char* kDecoding = "Decoding";
constexpr const char* kText = "Text";
constexpr const char* kMachine = "Machine and output";

constexpr SettingOption kSettingOptions[] = {
    {"--drafter", "generate.drafter", "NAME", kDecoding,
     "who proposes: medusa, prompt_lookup, merge (both), none (plain), …"},
    {"--rule", "generate.rule", "NAME", kDecoding,
     "which proposals stand; auto: greedy at temperature 0, match above it"},
    {"--heads", "generate.heads", "FOLDER", kDecoding, "trained heads; else the run's own"},
    {"--tree", "generate.tree", "FILE", kDecoding, "choice tree; else the run's own"},
    {"--temperature", "@.temperature", "X", kText, "of sampling; 0: the most probable text"},
    {"--top-p", "@.top_p", "X", kText, "sample from the most probable tokens of this share"},
    {"--top-k", "@.top_k", "N", kText, "sample from so many most probable tokens; 0: all"},
    {"--max-tokens", "@.max_new_tokens", "N", kText, "most tokens of one answer"},
    {"--stop", "@.stop", "TEXT", kText, "text that ends an answer (repeatable)", true},
    {"--seed", "seed", "N", kText, "of everything random"},
    {"--batch", "distill.batch", "N", kMachine, "answers that are written at the same time"},
    {"--device", "backbone.device", "NAME", kMachine, "auto, cpu or cuda"},
    {"--dtype", "backbone.dtype", "NAME", kMachine,
     "auto, float32, bfloat16, int8, or stored: a GGUF file's own blocks"},
    {"--threads", "backbone.threads", "N", kMachine, "CPU threads; else one for each CPU"},
    {"--context", "backbone.context", "N", kMachine, "most tokens of a sequence"},
    {"--cache-mb", "backbone.cache_mb", "N", kMachine, "most megabytes of the KV cache"},
};

const FieldHelp& setting_of(const std::string& key) {
  const auto& lines = all_settings();
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const FieldHelp& line) { return line.key == key; });
  MEDUSA_ASSERT(found != lines.end(), key);
  return *found;
}

void add_setting(Options& options, const SettingOption& option, const std::string& section,
                 CommonOptions& common) {
  std::string key = option.key;
  if (key[0] == '@') key.replace(0, 1, section);
  const FieldHelp& setting = setting_of(key);
  const bool shown = !setting.value.empty() && setting.value != "null" && setting.value != "[]" &&
                     setting.value != "auto";
  const std::string help = option.help + (shown ? " (" + setting.value + ")" : std::string());
  options.group(option.group);
  const std::string name = option.name;
  if (option.is_list)
    options.repeatable(name, option.argument, help, [&common, name, key](const std::string& text) {
      auto& given = common.settings;
      const auto there = std::find_if(given.begin(), given.end(),
                                      [&](const GivenSetting& each) { return each.key == key; });
      if (there == given.end())
        given.push_back({name, key, {text}, true});
      else
        there->texts.push_back(text);
    });
  else
    options.text(
        name, option.argument, help,
        [&common, name, key](const std::string& text) { common.set(name, key, text); },
        choices_of(setting));
}

std::string as_set(const GivenSetting& given) {
  if (!given.is_list) return given.key + "=" + yaml_text(given.texts[0]);
  std::string list;
  for (const std::string& text : given.texts) list += (list.empty() ? "" : ", ") + yaml_text(text);
  return given.key + "=[" + list + "]";
}

std::string as_typed(const GivenSetting& given) {
  return fmt::format("{} {}", given.option, given.texts.back());
}

void check_model_is_there(const CommonOptions& options) {
  if (!options.model.empty()) expect_model(options.model);
}

/// The setting of this name in another section; of several the one of decoding, which most want.
std::string setting_elsewhere(const std::string& name) {
  for (const char* section : {"generate.", ""})
    for (const FieldHelp& each : all_settings())
      if (each.key.starts_with(section) && each.key.ends_with("." + name)) return each.key;
  return "";
}

/// Keys that are nowhere near those of their section but are another section's; others are refused
/// with the nearest when they are read.
/// @param path  of the node: "train.", empty at the top.
void check_keys(const YamlFile& file, const YAML::Node& node, const std::string& path) {
  if (!node.IsMap()) return;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) continue;
    const std::string name = entry.first.Scalar(), key = path + name;
    bool known = false;
    std::vector<std::string> siblings;
    for (const FieldHelp& each : all_settings()) {
      known = known || each.key == key || each.key.starts_with(key + ".");
      if (each.key.starts_with(path))
        siblings.push_back(
            each.key.substr(path.size(), each.key.find('.', path.size()) - path.size()));
    }
    if (known) {
      check_keys(file, entry.second, key + ".");
      continue;
    }
    const std::string elsewhere = setting_elsewhere(name);
    if (elsewhere.empty() || !nearest_word(name, siblings).empty()) continue;
    const std::string section = path.substr(0, path.size() - (path.empty() ? 0 : 1));
    throw UserError(fmt::format("{}: unknown key '{}'{} (did you mean '{}'?); correct or remove it",
                                file.place(key, entry.first), shown_in_line(name),
                                path.empty() ? "" : " in '" + section + "'", elsewhere));
  }
}

/// A value that another one replaces is read, too: a wrong one is an error wherever it stands.
void check_replaced(const CommonOptions& options) {
  const std::string named = "backbone.model=model";  // settings name one
  std::set<std::string> given;
  for (const GivenSetting& each : options.settings) given.insert(each.key);
  for (auto set = options.sets.rbegin(); set != options.sets.rend(); ++set)
    if (!given.insert(set->substr(0, set->find('='))).second)
      read_config<RunConfig>(YamlFile::from_text("", "the command line", {named, *set}));
}

RunConfig read_settings(const CommonOptions& options) {
  check_replaced(options);
  std::vector<std::string> sets = options.sets;
  if (!options.model.empty()) sets.push_back("backbone.model=" + yaml_text(options.model));
  for (const GivenSetting& given : options.settings) sets.push_back(as_set(given));
  const YamlFile file = options.config.empty() ? YamlFile::from_text("", "the command line", sets)
                                               : YamlFile(options.config, sets);
  check_keys(file, file.root(), /*path=*/"");
  auto config = read_config<RunConfig>(file);
  if (file.root().IsMap())
    if (const YAML::Node generate = file.root()["generate"]; generate && generate.IsMap()) {
      config.generate.names_drafter = static_cast<bool>(generate["drafter"]);
      config.generate.names_thresholds = generate["epsilon"] || generate["delta"];
    }
  return config;
}

}  // namespace

void CommonOptions::set(const std::string& option, const std::string& key,
                        const std::string& text) {
  std::erase_if(settings, [&](const GivenSetting& each) { return each.key == key; });
  settings.push_back({option, key, {text}, false});
}

const std::vector<FieldHelp>& all_settings() {
  static const std::vector<FieldHelp> lines = [] {
    RunConfig config;
    FieldLister lister;
    config.fields(lister);
    return lister.lines();
  }();
  return lines;
}

void add_common_options(Options& options, const Command& command, CommonOptions& common) {
  if (!command.sections.empty()) {
    if (command.takes_model)
      options.positional("MODEL", common.model,
                         "a .gguf file, or a folder with config.json and .safetensors");
    options.group("Model and run");
    options.text("--model", "PATH", command.takes_model ? "the same as MODEL" : "the model",
                 [&common](const std::string& text) { common.model = text; });
    options.value("--config", common.config, "FILE",
                  "YAML file of settings; medusa init writes one");
    options.text("--run", "FOLDER", "folder of everything the run makes; else runs/<model's name>",
                 [&common](const std::string& text) { common.set("--run", "run", text); });
    options.repeatable("--set", "KEY=VALUE", "any other setting of --help all (repeatable)",
                       [&common](const std::string& text) { common.sets.push_back(text); });
  }
}

void add_setting_options(Options& options, const Command& command, CommonOptions& common) {
  for (const SettingOption& option : kSettingOptions)
    if (std::find(command.settings.begin(), command.settings.end(), option.name) !=
        command.settings.end())
      add_setting(options, option, command.text_section, common);
  options.group(kMachine);
  options.flag("--json", common.json, "print one machine-readable object on stdout");
}

RunConfig read_run_config(const CommonOptions& options) {
  check_model_is_there(options);
  RunConfig config;
  try {
    config = read_settings(options);
  } catch (const UserError& error) {  // as it was typed, where an option stood for a setting
    const std::string text = error.what();
    for (const GivenSetting& given : options.settings)
      if (const std::string set = "--set " + as_set(given); text.starts_with(set))
        throw UserError(as_typed(given) + text.substr(set.size()));
    throw;
  }
  if (config.run.empty()) {
    config.run = "runs/" + model_name(config.backbone.model);
    if (options.says_run) print_note("run folder: {} (--run names another)\n", config.run);
  }
  return config;
}

void check_parts_are_read(const CommonOptions& options, const std::vector<DrafterKind>& drafters,
                          const InferConfig& settings) {
  DraftNeeds needs;
  std::string names;
  for (const DrafterKind drafter : drafters) {
    InferConfig each = settings;
    each.drafter = drafter;
    needs |= needs_of(each);
    // Typical acceptance takes its thresholds from the tree, whoever drafts.
    needs.tree = needs.tree || (drafter != DrafterKind::None && settings.rule == RuleKind::Typical);
    names += (names.empty() ? "" : ", ") + enum_name(drafter);
  }
  for (const GivenSetting& given : options.settings)
    if ((given.key == "generate.heads" && !needs.heads) ||
        (given.key == "generate.tree" && !needs.tree))
      throw UserError(
          fmt::format("{}: found drafter {}, which does not read it, expected one that does, like "
                      "medusa; leave the option out or choose another drafter",
                      as_typed(given), names));
}

std::string model_name(const std::string& model) {
  const fs::path path = fs::absolute(model).lexically_normal();
  const fs::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
  const std::string name = last.extension() == ".gguf" ? last.stem().string() : last.string();
  return name.empty() ? "model" : name;
}

namespace {

/// A value that begins with a dash would be read as an option.
void append_option(std::vector<std::string>& words, const std::string& name,
                   const std::string& value) {
  if (value.starts_with('-'))
    words.push_back(name + "=" + value);
  else
    words.insert(words.end(), {name, value});
}

}  // namespace

std::vector<std::string> same_run_words(const CommonOptions& options, const std::string& command) {
  std::vector<std::string> words;
  // Behind an action like that of "dataset merge" no model can stand.
  const size_t action = command.find(' ');
  if (!options.model.empty()) {
    // Beside a settings file generate takes a first word for its prompt.
    if (action != std::string::npos || options.model.starts_with('-') || !options.config.empty())
      append_option(words, "--model", options.model);
    else
      words.push_back(options.model);
  }
  if (!options.config.empty()) append_option(words, "--config", options.config);
  for (const std::string& set : options.sets) words.insert(words.end(), {"--set", set});
  const std::vector<std::string>& own = command_named(command.substr(0, action)).settings;
  for (const GivenSetting& given : options.settings) {
    const bool of_run = given.key == "run" || given.key == "seed" ||
                        given.key.starts_with("backbone.") || given.key == "generate.heads" ||
                        given.key == "generate.tree";
    if (!of_run) continue;
    if (given.key == "run" || std::find(own.begin(), own.end(), given.option) != own.end())
      append_option(words, given.option, given.texts[0]);
    else
      words.insert(words.end(), {"--set", as_set(given)});
  }
  return words;
}

std::string same_run_command(const CommonOptions& options, const std::string& command,
                             const std::vector<std::string>& rest) {
  std::vector<std::string> words = same_run_words(options, command);
  words.insert(words.end(), rest.begin(), rest.end());
  std::string out = shell_word(options.program) + " " + command;
  for (const std::string& word : words) out += " " + shell_word(word);
  return out;
}

std::function<std::string(const std::string&)> same_run_commands(const CommonOptions& options) {
  return [&options](const std::string& command) { return same_run_command(options, command); };
}

void print_interrupted(bool fresh) {
  print_note("interrupted; run the same command again{} to continue\n",
             fresh ? ", without --fresh," : "");
}

void print_next(const CommonOptions& options, const std::string& command,
                const std::vector<std::string>& rest) {
  if (options.says_next) print_note("next: {}\n", same_run_command(options, command, rest));
}

}  // namespace medusa
