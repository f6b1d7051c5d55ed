// medusa run: distill, train, calibrate and compare, one after the other.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "backbone/weights.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/replace_folder.h"
#include "data/dataset/dataset_reader.h"
#include "data/prompts.h"
#include "heads/tree/choice_tree.h"
#include "tools/commands/command.h"
#include "tools/commands/command_line.h"
#include "tools/commands/options.h"
#include "tools/run/output_check.h"
#include "tools/training/stage_places.h"
#include "train/joint/tuned_llama.h"
#include "train/record/heads_place.h"
#include "train/samples/train_inputs.h"

namespace medusa {
namespace {

struct RunOptions {
  std::string questions;
  bool fresh = false;
};

/// As the command itself, told that another one follows.
/// @param before_removal  what it does before --fresh removes anything; empty: nothing.
void run_stage(const CommonOptions& common, int number, const std::string& name,
               std::vector<std::string> more, const std::function<void()>& before_removal = {}) {
  print_note("[{}/4] {}\n", number, name);
  std::vector<std::string> words = same_run_words(common, name);
  words.insert(words.end(), more.begin(), more.end());
  CommandOptions stage(command_named(name), common.program);
  stage.options.parse(words);
  stage.common.says_run = stage.common.says_next = false;
  stage.common.json = common.json && name == "generate";  // its object is the run's
  stage.common.before_removal = before_removal;
  stage.run();
}

/// An empty file is filled.
bool has_tree(const RunConfig& config) {
  const std::filesystem::path file = config.tree_file();
  return std::filesystem::exists(file) && std::filesystem::file_size(file) > 0;
}

/// Of these heads, or of any: such a tree was written by hand. On another machine or with another
/// dtype calibrate makes a better one.
bool has_their_tree(const RunConfig& config) {
  if (!has_tree(config)) return false;
  const std::string heads = read_choice_tree(config.tree_file()).heads;
  return heads.empty() || heads == identity_of_heads_at(config.heads_folder());
}

/// A tree that is named and was measured on other heads would be replaced: it may be another run's.
void check_named_tree(const RunConfig& config) {
  if (!config.generate.tree || !has_tree(config) || has_their_tree(config)) return;
  throw UserError(
      fmt::format("--tree {}: measured on other heads than {} has, expected a tree of these or "
                  "nothing there, since it would be replaced; name another place, or remove it",
                  config.tree_file().string(), config.heads_folder().string()));
}

/// Heads whose text and training are gone: training would refuse to replace them, after hours of
/// distilling.
void check_lonely_heads(const RunConfig& config, bool fresh) {
  const std::string there = identity_of_heads_at(config.heads_folder());
  if (fresh || config.generate.heads || there.empty()) return;
  if (std::filesystem::exists(config.dataset_folder()) ||
      std::filesystem::exists(config.train_folder()))
    return;
  throw UserError(fmt::format(
      "{}: holds heads, and the run has neither their text nor their training, expected these or "
      "nothing there; say --fresh to make all of it anew, or remove the heads",
      config.heads_folder().string()));
}

/// The tree and the comparison are of the heads that the first stage makes.
void check_heads_stage(const RunConfig& config) {
  if (config.train.has(StageKind::Heads) || folder_is_done(config.heads_folder())) return;
  throw UserError(fmt::format(
      "train.stages is [joint], and there are no heads in {} to calibrate and compare, expected "
      "some; set it to [heads, joint], or use medusa distill and medusa train, which say what "
      "follows",
      config.heads_folder().string()));
}

/// Sizes that the training asks of the model, and the states that it asks of the text.
void check_training(const RunConfig& config) {
  const ModelConfig model = read_model_config(config.backbone.model);
  check_heads_fit(config.train.heads, model);
  if (config.train.has(StageKind::Joint) && config.train.joint.part != TrainedPart::Lora)
    first_trained_layer(config.train.joint, model.num_layers);
  if (config.train.config.hidden == HiddenFrom::Offline && config.train.data.empty() &&
      !config.distill.record_hidden)
    throw UserError(
        "train.hidden is cached and distill.record_hidden is false, expected states that are "
        "recorded; set train.hidden to auto, or distill.record_hidden to true");
}

/// Training text of other runs is there already.
void check_named_data(const RunConfig& config) {
  const auto own = std::filesystem::weakly_canonical(config.dataset_folder());
  for (const std::string& folder : config.train.data)
    if (std::filesystem::weakly_canonical(folder) != own) DatasetReader{folder};
}

/// What a later stage would refuse, before the first has taken hours.
void check_later_stages(const RunConfig& config, const RunOptions& options) {
  std::error_code ignored;
  const bool is_stream =  // which can be read once
      options.questions == "-" || std::filesystem::is_fifo(options.questions, ignored);
  if (!options.questions.empty() && !is_stream) read_prompts(options.questions);
  check_training(config);
  check_stages(config, options.fresh);
  check_heads_stage(config);
  check_named_data(config);
  check_lonely_heads(config, options.fresh);
  check_output_tree(config);
  check_named_tree(config);
  check_output_file(config.compare_file(), ArtifactKind::Comparison);
  check_output_file(config.report_file(), ArtifactKind::Page);
}

void run_all(const CommonOptions& common, const RunOptions& options) {
  const RunConfig config = read_run_config(common);
  check_later_stages(config, options);
  const std::vector<std::string> fresh =
      options.fresh ? std::vector<std::string>{"--fresh"} : std::vector<std::string>();
  // Training goes with its text: who is killed in between goes on without --fresh.
  run_stage(common, 1, "distill", fresh, [&config] { begin_stages_anew(config); });
  if (interrupted()) return;
  run_stage(common, 2, "train", fresh);
  if (interrupted()) return;
  if (has_their_tree(config))
    print_note("[3/4] calibrate: {} is there\n", config.tree_file().string());
  else
    run_stage(common, 3, "calibrate", {});
  if (interrupted()) return;
  std::vector<std::string> compare{"--compare"};
  if (!options.questions.empty()) compare.insert(compare.end(), {"--questions", options.questions});
  run_stage(common, 4, "generate", compare);
  if (!interrupted()) print_next(common, "generate", {"What is gravity?"});
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .summary = "distill, train, calibrate and compare in one go; continues where it was",
          .details =
              "Every stage is a command of its own, with more options. What is done is not "
              "done again; Ctrl-C keeps it.",
          .sections = {"backbone", "distill", "train", "calibrate", "generate"},
          .settings = {"--heads", "--tree", "--seed", "--device", "--dtype", "--threads",
                       "--context", "--cache-mb"},
          .examples = {"run model.gguf", "run model.gguf --set distill.self_prompts=500",
                       "run --config my.yaml"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<RunOptions>();
            added.group("Stages");
            added.value("--questions", options->questions, "FILE",
                        "prompts of the comparison; else twelve built in");
            added.flag("--fresh", options->fresh, "start anew, as distill and train do");
            return [options, &common] { run_all(common, *options); };
          }};
}

}  // namespace medusa
