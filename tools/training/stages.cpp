#include "tools/training/stages.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "backbone/files/hf_export.h"
#include "backbone/files/model_files.h"
#include "base/error.h"
#include "base/output.h"
#include "base/replace_folder.h"
#include "base/stderr_progress.h"
#include "base/yaml_fields.h"
#include "data/dataset/sample_order.h"
#include "data/tokenizer/tokenizer_export.h"
#include "heads/heads_checkpoint.h"
#include "runtime/check_dataset.h"
#include "runtime/heads_trainer.h"
#include "runtime/kept_out.h"
#include "runtime/tuned_model.h"
#include "tools/measure/acceptance.h"
#include "tools/run/open_model.h"
#include "tools/training/stage_places.h"
#include "train/head_trainer.h"
#include "train/processes/data_parallel.h"
#include "train/record/checkpoint.h"
#include "train/record/run_identity.h"

namespace medusa {

namespace {

namespace fs = std::filesystem;

HeadsTrainerOptions options_of(const RunConfig& config, const StageOptions& stage) {
  HeadsTrainerOptions options;
  options.model = config.backbone.model;
  options.loading =
      placed_options(config.backbone, stage.group == nullptr ? 0 : stage.group->local_rank());
  if (!is_first(stage.group)) options.loading.progress = {};
  options.shape = config.train.heads;
  options.training = config.train.config;
  options.begin_with = config.train.begin_with.value_or("");
  options.heads = config.heads_folder();
  options.work = config.train_folder();
  options.settings = write_config(config);
  options.reported = stage.reported;
  options.group = stage.group;
  options.replaceable = stage.replaceable;
  return options;
}

}  // namespace

TrainResult run_heads_stage(const RunConfig& config, const DatasetReader& dataset,
                            const StageOptions& options) {
  HeadsTrainerOptions of_stage = options_of(config, options);
  of_stage.begin_anew = removal_of_heads_progress(config, options.fresh);
  return HeadsTrainer(std::move(of_stage)).run(dataset);
}

ResourceEstimate estimate_heads_resources(const RunConfig& config, const DatasetReader& dataset) {
  return HeadsTrainer(options_of(config, {})).estimate_resources(dataset);
}

namespace {

constexpr const char* kUntrained = "untrained";

struct FirstHeads {
  MedusaHeads heads;
  std::string fingerprint;
  std::vector<LearnedText> learned{};  // what they were trained on
};

/// Those that are named, those of the stage before, or untrained ones.
FirstHeads first_heads(const RunConfig& config, const DatasetReader& dataset,
                       const Weights& weights) {
  if (config.train.joint.heads || config.train.has(StageKind::Heads)) {
    const std::string folder = config.train.joint.heads.value_or(config.heads_folder().string());
    LoadedHeads loaded = load_heads(folder, weights);
    check_kept_out(folder, loaded.manifest, dataset, config.train.config.seed,
                   config.train.config.validation_fraction);
    return {std::move(loaded.heads), loaded.manifest.fingerprint, learned_texts(loaded.manifest)};
  }
  return {untrained_heads(config.train.config, config.train.heads, dataset, weights,
                          &weights.layers.back()),
          kUntrained};
}

/// The first process tells, for all of them.
ProgressFunction progress_of(const ProcessGroup* group) {
  return is_first(group) ? stderr_progress() : ProgressFunction();
}

Weights load_backbone(const RunConfig& config, const DatasetReader& dataset,
                      const ProcessGroup* group) {
  const Placement placement =
      place_process(config.backbone, group == nullptr ? 0 : group->local_rank());
  Weights weights = load_weights(config.backbone.model, training_dtype(config.backbone, placement),
                                 placement.device, QuantKind::None, progress_of(group));
  check_dataset(dataset, config.backbone.model, weights.fingerprint, weights.config);
  return weights;
}

TunedManifest manifest_of(const RunConfig& config, const JointResult& result,
                          const std::string& backbone, const DatasetReader& dataset) {
  TunedManifest manifest;
  manifest.backbone = backbone;
  manifest.dataset = dataset.fingerprint();
  manifest.mixed_datasets = mixed_datasets(dataset);
  manifest.steps = result.steps;
  manifest.stopped = result.stopped.value_or("");
  if (result.drift) manifest.drift = result.drift->numbers();
  manifest.settings = write_config(config);
  return manifest;
}

/// Model first, then the heads, which name its fingerprint.
/// @param learned  what the heads had learned from before.
void write_result(const RunConfig& config, const TunedManifest& tuned,
                  std::vector<LearnedText> learned, JointResult& result) {
  const fs::path source = config.backbone.model;
  replace_folder(config.joint_model_folder(), [&](const fs::path& place) {
    write_hf_model(place, narrowed(result.backbone), source);
    if (!fs::is_directory(source)) export_tokenizer(source, place);
    write_tuned_manifest(place, tuned);
  });
  HeadsManifest manifest;
  manifest.backbone = fingerprint_model(open_model_files(config.joint_model_folder()));
  manifest.dataset = tuned.dataset;
  manifest.mixed_datasets = tuned.mixed_datasets;
  manifest.learned_before = std::move(learned);
  manifest.seed = config.train.config.seed;
  manifest.validation_fraction = config.train.config.validation_fraction;
  manifest.step = result.steps;
  manifest.num_validation = result.num_validation;
  manifest.quality = result.validation;
  manifest.settings = tuned.settings;
  save_heads(config.joint_heads_folder(), result.heads, result.backbone.lm_head.scalar_type(),
             manifest);
}

void note_untrained_heads(const RunConfig& config) {
  const auto own = config.own_heads_folder();
  print_note("the heads begin untrained; {}\n",
             folder_is_done(own)
                 ? fmt::format("train.joint.heads: {} begins with this run's own", own.string())
                 : "train.stages: [heads, joint] trains them first");
}

}  // namespace

void note_other_threads(const std::filesystem::path& checkpoint) {
  if (!has_checkpoint(checkpoint)) return;
  const int64_t were = threads_in(read_checkpoint(checkpoint).run), are = at::get_num_threads();
  if (were == 0 || were == are) return;
  print_note(
      "note: --threads was {} when this training was interrupted and is {}, which changes its last "
      "bits; --threads {} makes those of a run that was never interrupted\n",
      were, are, were);
}

ResourceEstimate estimate_joint_resources(const RunConfig& config, const DatasetReader& dataset) {
  const Weights weights = load_backbone(config, dataset, nullptr);
  const bool there = config.train.joint.heads || folder_is_done(config.heads_folder());
  const MedusaHeads heads = there ? first_heads(config, dataset, weights).heads
                                  : untrained_heads(config.train.config, config.train.heads,
                                                    dataset, weights, &weights.layers.back());
  return estimate_resources(config.train.config, config.train.joint,
                            {dataset, weights, heads, "", config.joint_train_folder()});
}

JointResult run_joint_stage(const RunConfig& config, const DatasetReader& dataset,
                            const StageOptions& options) {
  ProcessGroup* const group = options.group;
  const Weights weights = load_backbone(config, dataset, group);
  const FirstHeads first = first_heads(config, dataset, weights);
  if (first.fingerprint == kUntrained && is_first(group)) note_untrained_heads(config);
  const RemoveProgress begin_anew = removal_of_joint_progress(config, options.fresh);
  if (is_first(group) && !begin_anew && !folder_is_done(config.joint_model_folder()))
    note_other_threads(config.joint_train_folder() / "checkpoint");
  JointResult result =
      train_joint(config.train.config, config.train.joint,
                  {dataset, weights, first.heads, first.fingerprint, config.joint_train_folder(),
                   options.reported, group, progress_of(group), begin_anew});
  if (result.complete && is_first(group)) {
    TunedManifest manifest = manifest_of(config, result, weights.fingerprint, dataset);
    manifest.heads = first.fingerprint;
    if (group != nullptr)
      manifest.settings +=
          fmt::format("# {} processes, each with train.joint.accumulate\n", group->world_size());
    write_result(config, manifest, first.learned, result);
  }
  if (group != nullptr) group->barrier();  // so that all end well or none
  return result;
}

nlohmann::ordered_json joint_json(const RunConfig& config, const JointResult& result,
                                  const PeakMemory& peak) {
  nlohmann::ordered_json out{{"model", config.joint_model_folder().string()},
                             {"heads", config.joint_heads_folder().string()},
                             {"complete", result.complete},
                             {"stopped", result.stopped.value_or("")},
                             {"steps", result.steps},
                             {"loss", result.loss},
                             {"positions", result.positions},
                             {"seconds", result.seconds}};
  add_memory(out, peak);
  if (result.drift)
    for (const auto& [name, value] : result.drift->numbers()) out[name] = value;
  if (!result.validation.empty()) out["validation"] = quality_json(result.validation);
  return out;
}

void report_joint(const RunConfig& config, const JointResult& result, const PeakMemory& peak) {
  print_note("joint: {} optimizer steps, loss {:.3f}, {:.0f} answer tokens/s{}\n", result.steps,
             result.loss,
             result.seconds > 0 ? static_cast<double>(result.positions) / result.seconds : 0.0,
             memory_text(peak));
  if (result.drift)
    print_note(
        "the backbone moved by KL {:.4f} nats; perplexity {:.3f}, was {:.3f}; {:.0f} % of "
        "{} greedy answers are the same\n",
        result.drift->kl, result.drift->perplexity, result.drift->original_perplexity,
        100 * result.drift->greedy_match, result.drift->answers);
  if (result.stopped)
    print_note("stopped by the guard: {}; this is the checkpoint of step {}\n", *result.stopped,
               result.steps);
  print_quality(result.validation);
  if (!result.complete) return;
  const std::string folder = config.joint_folder().string();
  print_note(
      "model: {0}/model, heads: {0}/heads\nto use them: medusa calibrate or generate with --model "
      "{0}/model --heads {0}/heads --tree {0}/tree.yaml\n",
      folder);
}

}  // namespace medusa
