#include "runtime/calibrator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/dataset/sample_order.h"
#include "heads/draft_temperature.h"
#include "heads/head_statistics.h"
#include "heads/heads_checkpoint.h"
#include "heads/tree/tree_search.h"
#include "runtime/check_dataset.h"
#include "runtime/kept_out.h"
#include "runtime/measure/device_step_timer.h"
#include "runtime/measure/row_timer.h"
#include "runtime/measure/step_timer.h"
#include "train/samples/hidden_source.h"

namespace medusa {
namespace {

constexpr double kMostKeptOut = 0.5;  // as training's validation_fraction

void check_calibration(const Model& model, const CalibratorOptions& options) {
  expect_loaded(model, "Calibrator");
  expect_named(options.heads, "CalibratorOptions::heads");
  check_config(options.config, "calibrate");
  check_config(options.infer, "generate");
  if (!(options.validation_fraction >= 0 && options.validation_fraction <= kMostKeptOut))
    throw UserError(fmt::format("train.validation_fraction is {}, expected {}; correct it",
                                number_text(options.validation_fraction),
                                between(0.0, kMostKeptOut).text));
}

/// What the validation answers say of the heads.
struct Measured {
  HeadStatistics statistics;
  std::vector<double> temperatures;  // [K]
};

/// Drafts at every root of the validation answers.
Measured collect(const CalibratorOptions& options, const DatasetReader& dataset,
                 const HiddenSource& hidden, HeadsRunner& runner, ProgressFunction tell) {
  const SampleSplit split =
      split_dataset(Random(options.seed), dataset, options.validation_fraction);
  if (split.validation.empty())
    throw UserError(fmt::format(
        "{}: train.validation_fraction is {}, found no validation samples of {}, expected some; "
        "raise it and train anew with --fresh, or distil more text",
        dataset.sources()[0].folder.string(), number_text(options.validation_fraction),
        dataset.size()));
  HeadStatistics statistics(runner.num_heads(), runner.top_k());
  TemperatureFit temperatures(runner.num_heads());
  Progress progress(std::move(tell), "count drafts", "positions", 0);
  for (const int64_t sample : split.validation) {
    stop_if_interrupted();
    if (statistics.num_positions() >= options.config.positions) break;
    const auto answer = dataset.answer(sample);
    // Positions with a true token for every head; row i is the state before root answer[i].
    const auto count = static_cast<int64_t>(answer.size()) - runner.num_heads();
    if (count <= 0) continue;
    // Sequential heads read the true tokens before their own. A path is right only where its prefix
    // is, so that is what they will have read wherever it counts.
    const HeadDrafts& drafts = runner.draft_along(hidden(sample).narrow(0, 0, count), answer);
    statistics.add_answer(drafts.tokens, answer);
    temperatures.add_answer(drafts, answer);
    progress.update(statistics.num_positions());
  }
  progress.finish();
  if (statistics.num_positions() == 0)
    throw UserError(
        fmt::format("{}: validation answers are all shorter than the {} heads, expected a longer "
                    "one; distil more text, or longer answers with a larger distill.max_new_tokens",
                    dataset.sources()[0].folder.string(), runner.num_heads()));
  return {std::move(statistics), temperatures.temperatures()};
}

/// The tokens before the timed step: validation text, one answer after the other.
std::vector<TokenId> context_tokens(const DatasetReader& dataset, size_t length) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; tokens.size() < length; i = (i + 1) % dataset.size()) {
    const auto sample = dataset.tokens(i);
    tokens.insert(tokens.end(), sample.begin(), sample.end());
  }
  tokens.resize(length);
  return tokens;
}

std::vector<int32_t> sizes_up_to(int64_t most) {
  std::vector<int32_t> sizes;
  for (const int32_t n : {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64})
    if (n < most) sizes.push_back(n);
  sizes.push_back(static_cast<int32_t>(most));
  return sizes;
}

/// Steps as the settings will run them: in the GPU's own loop where it decodes, else in the host's.
StepTimes time_sizes(const CalibratorOptions& options, const Model& model, const MedusaHeads& heads,
                     HeadsRunner& runner, const std::vector<RankPath>& paths,
                     const std::vector<TokenId>& context) {
  const std::vector<int32_t> sizes = sizes_up_to(static_cast<int64_t>(paths.size()) + 1);
  const int64_t repeats = options.config.repeats;
  BackboneTarget target(*model.llama, 1, model.context);
  if (const auto times = time_device_steps(target, heads, options.infer, paths, context, sizes,
                                           repeats, cuda_loop_kernels(), model.progress))
    return *times;
  return time_steps(target, runner, paths, context, sizes, repeats, model.progress);
}

TreeCalibration describe(const HeadStatistics& statistics, const std::vector<PathValue>& paths) {
  TreeCalibration out;
  out.num_positions = statistics.num_positions();
  out.num_answers = statistics.num_answers();
  for (const auto& counts : statistics.head_counts()) {
    auto& accuracy = out.head_accuracy.emplace_back();
    for (const int64_t count : counts)
      accuracy.push_back(static_cast<double>(count) / static_cast<double>(out.num_positions));
  }
  for (const PathValue& path : paths) out.path_counts.push_back({path.path, path.count});
  return out;
}

}  // namespace

Calibrator::Calibrator(const Model& model, CalibratorOptions options)
    : model_(model), options_(std::move(options)) {
  check_calibration(model_, options_);
}

ChoiceTree Calibrator::run(const DatasetReader& dataset) const {
  const auto turn = model_.turns->take("Calibrator");
  Llama& llama = *model_.llama;
  const bool own_states =
      check_dataset(dataset, model_.path, llama.weights().fingerprint, llama.config());
  const LoadedHeads loaded = load_heads(options_.heads, llama.weights());
  check_kept_out(options_.heads.string(), loaded.manifest, dataset, options_.seed,
                 options_.validation_fraction);
  const CalibrateConfig& settings = options_.config;
  HeadsRunner runner(loaded.heads, llama.weights(), settings.top_k, llama.execution());

  const HiddenSource hidden =
      own_states ? recorded_hidden(dataset, &llama) : online_hidden(dataset, llama);
  const auto [statistics, temperatures] =
      collect(options_, dataset, hidden, runner, model_.progress);
  const int64_t most = settings.nodes.value_or(settings.max_nodes);
  const std::vector<PathValue> ranked = rank_paths(statistics, most - 1, settings.smoothing);
  std::vector<RankPath> paths;
  for (const PathValue& each : ranked) paths.push_back(each.path);

  const auto context =
      static_cast<size_t>(std::max<int64_t>(2, std::min(settings.context, model_.context - 64)));
  const auto largest = static_cast<int64_t>(paths.size()) + 1;
  const StepTimes times =
      time_sizes(options_, model_, loaded.heads, runner, paths, context_tokens(dataset, context));
  const std::vector<double> step_ms = interpolate_ms(times.sizes, times.step_ms);
  TreeCalibration calibration = describe(statistics, ranked);
  calibration.machine = machine_text(llama);
  calibration.rows_ms = times.rows_ms.empty() ? time_rows(llama) : times.rows_ms;
  if (!times.drafting_ms.empty())
    calibration.drafting_ms = interpolate_ms(times.sizes, times.drafting_ms);
  calibration.context = static_cast<int64_t>(context);
  for (size_t i = 0; i < step_ms.size(); ++i)
    calibration.sizes.push_back(
        {static_cast<int32_t>(i) + 1,
         tokens_per_step(statistics,
                         {paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(i)},
                         StepStarts::Replayed),
         step_ms[i]});
  const auto chosen =
      static_cast<size_t>(settings.nodes ? largest : choose_size(calibration.sizes).num_nodes);

  ChoiceTree tree =
      make_choice_tree({paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(chosen - 1)},
                       static_cast<int32_t>(settings.top_k), "the calibrated tree");
  tree.heads = loaded.manifest.fingerprint;
  tree.temperatures = temperatures;
  tree.expected_tokens_per_step =
      measure_tree(statistics, tree.paths, StepStarts::Replayed, Random(options_.seed));
  tree.calibration = std::move(calibration);
  return tree;
}

}  // namespace medusa
