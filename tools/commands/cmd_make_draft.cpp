// medusa make-draft: cuts a small model out of the backbone and trains it to draft.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "backbone/files/hf_export.h"
#include "base/error.h"
#include "base/output.h"
#include "base/replace_folder.h"
#include "base/stderr_progress.h"
#include "data/dataset/dataset_reader.h"
#include "runtime/check_dataset.h"
#include "runtime/draft_folder.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/open_model.h"
#include "tools/run/output_check.h"
#include "tools/training/stage_places.h"
#include "tools/training/stages.h"
#include "train/draft_trainer.h"
#include "train/record/checkpoint.h"

namespace medusa {
namespace {

void report(const DraftManifest& manifest, const std::filesystem::path& folder, double seconds,
            bool as_json) {
  if (as_json) {
    nlohmann::ordered_json out{{"draft", folder.string()}, {"seconds", seconds}};
    out.update(draft_json(manifest));
    print_json(out);
    return;
  }
  print_note("{} of its first choices are the backbone's ({} validation positions)\n",
             number_text(std::round(1000 * manifest.agreement) / 1000), manifest.num_validation);
  print_note("draft model: {}\n", folder.string());
}

/// There is no draft model yet; the checkpoint holds everything so far.
void report_interrupted(const DraftTrainResult& result, const std::filesystem::path& folder,
                        bool fresh, bool as_json) {
  if (as_json)
    print_json(nlohmann::ordered_json{{"draft", folder.string()},
                                      {"complete", false},
                                      {"steps", result.steps},
                                      {"seconds", result.seconds}});
  print_note("{} steps are done\n", result.steps);
  print_interrupted(fresh);
}

void run_make_draft(const CommonOptions& options, bool fresh) {
  const RunConfig config = read_run_config(options);
  const std::filesystem::path folder = config.made_draft_folder();
  check_output_folder(folder, ArtifactKind::DraftModel);
  const Placement placement = place_process(config.backbone);
  const DatasetReader dataset = open_dataset(config);
  Weights weights = load_weights(config.backbone.model, training_dtype(config.backbone, placement),
                                 placement.device, QuantKind::None, stderr_progress());
  const bool own_states =
      check_dataset(dataset, config.backbone.model, weights.fingerprint, weights.config);
  const FolderLock lock = lock_run(config, "medusa make-draft");
  DraftManifest manifest;
  manifest.backbone = weights.fingerprint;
  manifest.tokenizer = dataset.info().tokenizer;
  manifest.dataset = dataset.fingerprint();
  manifest.layers = draft_layers(config.draft.layers, weights.config.num_layers);
  if (!fresh && folder_is_done(folder) && !draft_is_begun_anew(config)) {
    const auto there = read_draft_manifest(folder);
    if (there && there->complete && there->dataset == manifest.dataset &&
        there->layers == manifest.layers) {
      print_note(
          "a draft model of this dataset and these layers is there already; --fresh makes it "
          "again, "
          "with the settings of now\n");
      return report(*there, folder, 0, options.json);
    }
    if (there && there->complete && !has_checkpoint(config.draft_train_folder() / "checkpoint"))
      throw UserError(fmt::format(
          "{}: holds a draft model of another dataset or other layers, and not the training that "
          "made it, expected both or neither, since it would be replaced; move it away, or say "
          "--fresh",
          folder.string()));
  }

  TrainableLlama draft(weights, manifest.layers);
  std::unique_ptr<Llama> llama;
  if (!own_states || !dataset.has_hidden())
    llama = std::make_unique<Llama>(std::move(weights), ExecutionContext(placement.execution));
  weights.layers.clear();
  const HiddenSource hidden =
      own_states ? recorded_hidden(dataset, llama.get()) : online_hidden(dataset, *llama);
  if (!fresh) note_other_threads(config.draft_train_folder() / "checkpoint");
  const DraftTrainResult result = train_draft(config.draft,
                                              {dataset,
                                               hidden,
                                               manifest.backbone,
                                               config.seed,
                                               config.draft_train_folder(),
                                               {},
                                               stderr_progress(),
                                               removal_of_draft_progress(config, fresh)},
                                              draft);
  if (!result.complete) return report_interrupted(result, folder, fresh, options.json);
  manifest.steps = result.steps;
  manifest.complete = true;
  manifest.loss = result.validation_loss;
  manifest.agreement = result.agreement;
  manifest.num_validation = result.num_validation;
  replace_folder(folder, [&](const std::filesystem::path& place) {
    write_hf_model(place, narrowed(draft.weights()), config.backbone.model);
    write_draft_manifest(place, manifest);
  });
  end_of_draft(config);
  report(manifest, folder, result.seconds, options.json);
  print_next(options, "generate", {"What is gravity?", "--drafter", "draft_model"});
}

}  // namespace

Command make_draft_command() {
  return {.name = "make-draft",
          .summary = "cut a small model out of the backbone and train it to draft",
          .details = "It learns from the run's dataset, or from the folders that train.data names.",
          .sections = {"backbone", "draft"},
          .settings = {"--device", "--dtype", "--threads", "--seed"},
          .examples = {"make-draft model.gguf"},
          .attach = [](Options& added, const CommonOptions& options) {
            const auto fresh = std::make_shared<bool>(false);
            added.flag("--fresh", *fresh,
                       "begin anew; the draft model stays until the new one is complete");
            return [fresh, &options] { run_make_draft(options, *fresh); };
          }};
}

}  // namespace medusa
