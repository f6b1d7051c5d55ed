#include "tools/report/report_inputs.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "base/error.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// @param maker  the command that makes the artifact.
template <typename T>
ReportPart<T> read_part(const fs::path& path, const std::string& maker,
                        const std::function<T(const fs::path&)>& read) {
  if (!fs::exists(path))
    return {std::nullopt, fmt::format("This run has no {} yet; medusa {} makes it.",
                                      path.filename().string(), maker)};
  try {
    return {read(path), {}};
  } catch (const UserError& error) {
    return {std::nullopt, fmt::format("Left out: {}.", error.what())};
  }
}

DatasetSummary summarize_dataset(const fs::path& folder) {
  return summarize(DatasetReader(folder));
}

std::string run_name(const fs::path& folder) {
  fs::path path = fs::weakly_canonical(folder);
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

}  // namespace

bool compares_other_heads(const ReportInputs& inputs) {
  if (!inputs.comparison.value || !inputs.heads.value) return false;
  const ReportedComparison& comparison = *inputs.comparison.value;
  const auto is_other = [](const std::string& compared, const std::string& own) {
    return !compared.empty() && compared != own;
  };
  return is_other(comparison.heads, inputs.heads.value->fingerprint) ||
         is_other(comparison.backbone, inputs.heads.value->backbone);
}

DatasetSummary summarize(const DatasetReader& dataset) {
  return {.info = dataset.info(),
          .fingerprint = dataset.fingerprint(),
          .num_samples = dataset.size(),
          .num_answer_tokens = dataset.num_answer_tokens(),
          .num_hidden = dataset.num_hidden(),
          .complete = dataset.complete()};
}

ReportInputs read_report_inputs(const fs::path& run_folder, std::optional<DatasetSummary> dataset) {
  if (!fs::is_directory(run_folder))
    throw UserError(fmt::format("{}: no such folder, expected the folder of a run; check the path",
                                run_folder.string()));
  ReportInputs inputs;
  inputs.run = run_name(run_folder);
  inputs.dataset.value = std::move(dataset);
  if (!inputs.dataset.value)
    inputs.dataset =
        read_part<DatasetSummary>(run_folder / "dataset", "distill", summarize_dataset);
  inputs.training = read_part<TrainingCurve>(run_folder / "train" / "metrics.jsonl", "train",
                                             read_training_curve);
  inputs.joint = read_part<TrainingCurve>(run_folder / "joint" / "train" / "metrics.jsonl", "train",
                                          read_training_curve)
                     .value;
  inputs.heads = read_part<HeadsManifest>(run_folder / "heads", "train", read_heads_manifest);
  inputs.tree = read_part<ChoiceTree>(run_folder / "tree.yaml", "calibrate", read_choice_tree);
  inputs.comparison = read_part<ReportedComparison>(run_folder / "compare.json",
                                                    "generate --compare", read_comparison);
  inputs.other_pages = pages_beside(run_folder, "report.html");
  if (inputs.comparison.value) inputs.settings = inputs.comparison.value->settings;
  if (inputs.settings.empty() && inputs.heads.value) inputs.settings = inputs.heads.value->settings;
  return inputs;
}

}  // namespace medusa
