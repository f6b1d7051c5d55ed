// medusa init: writes a settings file to start from.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/shown_text.h"
#include "runtime/model.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"

namespace medusa {
namespace {

/// What most want to change, by section; the defaults stand in the file as comments.
constexpr const char* kShown[] = {
    "distill.prompts",       "distill.self_prompts", "distill.max_new_tokens",
    "distill.temperature",   "distill.batch",        "train.epochs",
    "train.batch_positions", "train.learning_rate",  "train.heads.num_heads",
    "train.heads.input",     "train.heads.output",   "calibrate.nodes",
    "generate.drafter",      "generate.temperature", "generate.max_new_tokens",
    "generate.stop"};

/// What a setting is, in comments, and below it the key with its default.
std::string commented(const FieldHelp& setting, size_t indent) {
  constexpr size_t kColumns = 100;
  const std::string margin(indent, ' ');
  const std::string name = setting.key.substr(setting.key.rfind('.') + 1);
  std::istringstream words(setting.help +
                           (setting.allowed.empty() ? "" : " [" + setting.allowed + "]"));
  std::string text, line = margin + "#";
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kColumns) {
      text += line + "\n";
      line = margin + "#";
    }
    line += " " + word;
  }
  return text + line + "\n" + margin + "#" + name + ": " + setting.value + "\n";
}

std::string settings_file(const std::string& model, const std::string& run, bool is_example) {
  std::string text = fmt::format(
      "# Settings of a run. What is left out has a default; medusa help COMMAND all lists all "
      "settings.\n# To change one below, remove the '#' right before its key.\n"
      "run: {}\nseed: 1\nbackbone:\n  model: {}{}\n",
      yaml_text(run), yaml_text(model), is_example ? "   # change this" : "");
  std::string section, inner;
  for (const char* key : kShown) {
    const auto settings =
        settings_of(all_settings(), {std::string(key).substr(0, std::string(key).find('.'))});
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const FieldHelp& line) { return line.key == key; });
    MEDUSA_ASSERT(setting != settings.end(), key);
    const std::string path = setting->key;
    const std::string top = path.substr(0, path.find('.'));
    const std::string rest = path.substr(top.size() + 1);
    if (top != section) text += top + ":\n";
    if (const size_t dot = rest.find('.'); dot == std::string::npos) {
      text += commented(*setting, 2);
      inner.clear();
    } else {
      if (inner != rest.substr(0, dot)) text += "  " + rest.substr(0, dot) + ":\n";
      inner = rest.substr(0, dot);
      text += commented(*setting, 4);
    }
    section = top;
  }
  return text;
}

struct InitOptions {
  std::string model, output;
};

void run_init(const CommonOptions& common, const InitOptions& options) {
  const bool named = !options.model.empty();
  if (named) expect_model(options.model);
  const std::string name = named ? model_name(options.model) : "my-model";
  const std::string file = options.output.empty() ? name + ".yaml" : options.output;
  if (std::filesystem::exists(std::filesystem::symlink_status(file)))
    throw UserError(fmt::format(
        "{}: exists already, expected a new file; remove it, or name another with --output", file));
  if (file == "-")
    throw UserError(
        "--output -: found no name of a file, expected one, as commands read settings by name; "
        "name another");
  write_file(file,
             settings_file(named ? options.model : "models/my-model.gguf", "runs/" + name, !named));
  if (common.json)
    print_json(nlohmann::json{{"settings", file}});
  else
    print_text("settings: {}\n", file);
  CommonOptions next = common;
  next.config = file;
  print_next(next, "run");
}

}  // namespace

Command init_command() {
  return {.name = "init",
          .summary = "write a settings file with comments, to start from",
          .examples = {"init model.gguf", "init model.gguf --output my.yaml"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<InitOptions>();
            added.positional("MODEL", options->model,
                             "a .gguf file, or a folder with config.json and .safetensors");
            added.group("Output");
            added.value("--output", options->output, "FILE",
                        "to write; it must not exist (<model's name>.yaml)");
            return [options, &common] { run_init(common, *options); };
          }};
}

}  // namespace medusa
