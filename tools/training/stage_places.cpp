#include "tools/training/stage_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "backbone/files/model_files.h"
#include "base/error.h"
#include "base/file.h"
#include "base/replace_folder.h"
#include "base/shown_text.h"
#include "heads/heads_checkpoint.h"
#include "tools/run/output_check.h"
#include "train/record/checkpoint.h"
#include "train/record/heads_place.h"
#include "train/samples/train_inputs.h"

namespace medusa {

namespace fs = std::filesystem;

namespace {

/// In a folder of progress: which heads --fresh was told to replace, and that it is to be removed
/// when its stage begins.
constexpr const char *kReplaceable = "replaceable", *kBeginsAnew = "begins-anew";

bool is_own_place(const RunConfig& config) {
  return fs::weakly_canonical(config.heads_folder()) ==
         fs::weakly_canonical(config.own_heads_folder());
}

/// What it says; empty: nothing.
std::string replaceable_in(const fs::path& progress) {
  const fs::path file = progress / kReplaceable;
  return fs::exists(file) ? read_file(file) : "";
}

/// At every moment the folder is as it was or says what may be replaced, so that whatever stops
/// this costs no permission; and that it begins anew, if it says so, until nothing is left.
void begin_anew(const fs::path& progress, const std::string& replaceable) {
  if (replaceable.empty()) return remove_folder(progress);
  make_folder(progress);
  write_file(progress / kReplaceable, replaceable);
  remove_folder(progress / "checkpoint");  // what is left without it begins anew
  std::vector<fs::path> before;
  for (const auto& entry : fs::directory_iterator(progress))
    if (entry.path().filename() != kReplaceable && entry.path().filename() != kBeginsAnew)
      before.push_back(entry.path());
  for (const fs::path& each : before) remove_folder(each);
  remove_folder(progress / kBeginsAnew);
}

void let_joint_begin_anew(const RunConfig& config) {
  const fs::path progress = config.joint_train_folder();
  const std::string there = identity_of_heads_at(config.joint_heads_folder());
  if (there.empty() && !fs::exists(progress)) return;
  make_folder(progress);
  if (!there.empty()) write_file(progress / kReplaceable, there);
  write_file(progress / kBeginsAnew, "");
}

/// Heads that training begins with are those of this backbone.
HeadsManifest named_heads(const RunConfig& config, const std::string& folder) {
  HeadsManifest manifest = read_heads_manifest(folder);
  check_trained_on(fingerprint_model(open_model_files(config.backbone.model)), folder, manifest);
  return manifest;
}

void check_begin_with(const RunConfig& config) {
  const auto& named = config.train.begin_with;
  if (!named) return;
  check_earlier(config.train.heads, named_heads(config, *named).config);
  if (fs::weakly_canonical(*named) != fs::weakly_canonical(config.heads_folder())) return;
  std::vector<std::string> data = config.train.data;
  if (data.empty()) data.push_back(config.dataset_folder().string());
  for (std::string& each : data) each = yaml_text(each);
  throw UserError(fmt::format(
      "train.begin_with is {}, where the result goes, expected heads in another place, since these "
      "would be replaced; train in another run: --run FOLDER --set {}",
      *named, shell_word(fmt::format("train.data=[{}]", fmt::join(data, ", ")))));
}

void check_heads_output(const RunConfig& config, bool fresh) {
  const fs::path folder = config.heads_folder();
  check_output_folder(folder, ArtifactKind::Heads);
  check_not_imported(folder);
  if (is_own_place(config) && identity_of_heads_at(folder) == kUnreadableHeads &&
      replaceable_heads(config, fresh) != kUnreadableHeads)
    throw UserError(fmt::format(
        "{}: holds heads that cannot be read, expected heads of this training or nothing there, "
        "since they would be replaced; move them away, or say --fresh",
        folder.string()));
  if (is_own_place(config) || !folder_is_done(folder)) return;
  if (fresh)
    throw UserError(
        fmt::format("--heads {}: holds heads, expected a new folder with --fresh, since they would "
                    "be replaced; name another one, or remove them",
                    folder.string()));
  if (has_checkpoint(config.train_folder() / "checkpoint")) return;
  throw UserError(fmt::format(
      "--heads {}: holds heads, and this run has no training that made them, expected a "
      "new folder, since they would be replaced; name another one, or remove them",
      folder.string()));
}

void check_joint_outputs(const RunConfig& config, bool fresh) {
  check_output_folder(config.joint_model_folder(), ArtifactKind::HuggingFace);
  check_output_folder(config.joint_heads_folder(), ArtifactKind::Heads);
  check_not_imported(config.joint_heads_folder());
  const std::string there = identity_of_heads_at(config.joint_heads_folder());
  if (fresh || there.empty() || there == replaceable_in(config.joint_train_folder()) ||
      has_checkpoint(config.joint_train_folder() / "checkpoint"))
    return;
  throw UserError(
      fmt::format("{}: holds a tuned model and its heads, and not the training that made them, "
                  "expected both or neither, since they would be replaced; move the folder away, "
                  "or say --fresh",
                  config.joint_folder().string()));
}

/// Where settings alone keep all samples in training.
void check_validation(const RunConfig& config) {
  if (config.train.config.validation_fraction > 0) return;
  const bool guarded = config.train.has(StageKind::Joint) && config.train.joint.guard.samples > 0;
  const bool judged = config.train.has(StageKind::Heads) && config.train.config.keep_best;
  if (!guarded && !judged) return;
  throw UserError(fmt::format(
      "train.validation_fraction is 0, and {} needs samples that are kept out of training, "
      "expected more than 0; raise it, or set {}",
      guarded ? "train.joint.guard" : "train.keep_best",
      guarded ? "train.joint.guard.samples to 0" : "train.keep_best to false"));
}

}  // namespace

void check_stages(const RunConfig& config, bool fresh) {
  check_validation(config);
  if (config.train.has(StageKind::Heads)) {
    check_begin_with(config);
    check_heads_output(config, fresh);
  }
  if (!config.train.has(StageKind::Joint)) return;
  const auto& named = config.train.joint.heads;
  const bool is_made = config.train.has(StageKind::Heads) && named &&
                       fs::weakly_canonical(*named) == fs::weakly_canonical(config.heads_folder());
  if (named && !is_made) named_heads(config, *named);
  check_joint_outputs(config, fresh);
}

std::string replaceable_heads(const RunConfig& config, bool fresh) {
  if (!is_own_place(config)) return "";
  return fresh ? identity_of_heads_at(config.heads_folder())
               : replaceable_in(config.train_folder());
}

void begin_stages_anew(const RunConfig& config) {
  if (config.train.has(StageKind::Joint)) let_joint_begin_anew(config);
  if (config.train.has(StageKind::Heads))
    begin_anew(config.train_folder(), replaceable_heads(config, /*fresh=*/true));
}

RemoveProgress removal_of_heads_progress(const RunConfig& config, bool fresh) {
  if (!fresh) return {};
  return [&config] { begin_stages_anew(config); };
}

RemoveProgress removal_of_joint_progress(const RunConfig& config, bool fresh) {
  const fs::path progress = config.joint_train_folder();
  const bool told = fresh && !config.train.has(StageKind::Heads);
  if (!told && !fs::exists(progress / kBeginsAnew)) return {};
  return [&config, progress] {
    begin_anew(progress, identity_of_heads_at(config.joint_heads_folder()));
  };
}

RemoveProgress removal_of_draft_progress(const RunConfig& config, bool fresh) {
  if (!fresh) return {};
  return [&config] { begin_anew(config.draft_train_folder(), "the draft model"); };
}

bool draft_is_begun_anew(const RunConfig& config) {
  return !replaceable_in(config.draft_train_folder()).empty();
}

void end_of_draft(const RunConfig& config) {
  remove_folder(config.draft_train_folder() / kReplaceable);
}

}  // namespace medusa
