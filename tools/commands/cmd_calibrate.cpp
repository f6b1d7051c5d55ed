// medusa calibrate: measures which drafts are right and what a step costs, and writes the choice
// tree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/stderr_progress.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/sample_order.h"
#include "data/prompts.h"
#include "heads/draft_temperature.h"
#include "heads/head_statistics.h"
#include "heads/heads_checkpoint.h"
#include "heads/tree/tree_search.h"
#include "runtime/measure/device_step_timer.h"
#include "runtime/measure/row_timer.h"
#include "runtime/measure/step_timer.h"
#include "tools/check_dataset.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/drafter_choice.h"
#include "tools/layer_search.h"
#include "tools/measure/predict.h"
#include "tools/open_model.h"
#include "tools/output_check.h"
#include "train/samples/hidden_source.h"

namespace medusa {
namespace {

constexpr int64_t kLayerSearchPositions = 384;  // that agreement is measured on
constexpr int64_t kLayerSearchAnswer = 64;      // tokens of one answer

/// What the validation answers say of the heads.
struct Measured {
  HeadStatistics statistics;
  std::vector<double> temperatures;  // [K]
};

/// Drafts at every root of the validation answers.
Measured collect(const RunConfig& config, const DatasetReader& dataset, const HiddenSource& hidden,
                 HeadsRunner& runner) {
  const SampleSplit split =
      split_dataset(Random(config.seed), dataset, config.train.config.validation_fraction);
  if (split.validation.empty())
    throw UserError(fmt::format(
        "{}: train.validation_fraction is {}, found no validation samples, expected some; raise it "
        "and train again",
        dataset.sources()[0].folder.string(),
        number_text(config.train.config.validation_fraction)));
  HeadStatistics statistics(runner.num_heads(), runner.top_k());
  TemperatureFit temperatures(runner.num_heads());
  Progress progress(stderr_progress(), "count guesses", "positions", 0);
  for (const int64_t sample : split.validation) {
    stop_if_interrupted();
    if (statistics.num_positions() >= config.calibrate.positions) break;
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
        fmt::format("{}: validation answers are all shorter than the {} heads, expected longer "
                    "ones; distil more text",
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
StepTimes time_sizes(const RunConfig& config, const Model& model, const MedusaHeads& heads,
                     HeadsRunner& runner, const std::vector<RankPath>& paths,
                     const std::vector<TokenId>& context) {
  const std::vector<int32_t> sizes = sizes_up_to(static_cast<int64_t>(paths.size()) + 1);
  const int64_t repeats = config.calibrate.repeats;
  BackboneTarget target(*model.llama, 1, model.context);
  if (const auto times = time_device_steps(target, heads, config.generate.infer, paths, context,
                                           sizes, repeats, cuda_loop_kernels(), stderr_progress()))
    return *times;
  return time_steps(target, runner, paths, context, sizes, repeats, stderr_progress());
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

ChoiceTree calibrate(const RunConfig& config) {
  const DatasetReader dataset = open_dataset(config);  // what is cheap to refuse comes first
  check_heads(config);
  const Model model = open_model(config.backbone);
  Llama& llama = *model.llama;
  const bool own_states =
      check_dataset(dataset, config, llama.weights().fingerprint, llama.config());
  const LoadedHeads loaded = load_heads(config.heads_folder(), llama.weights());
  const CalibrateSection& settings = config.calibrate;
  HeadsRunner runner(loaded.heads, llama.weights(), settings.top_k, llama.execution());

  const HiddenSource hidden =
      own_states ? recorded_hidden(dataset, &llama) : online_hidden(dataset, llama);
  const auto [statistics, temperatures] = collect(config, dataset, hidden, runner);
  const int64_t most = settings.nodes.value_or(settings.max_nodes);
  const std::vector<PathValue> ranked = rank_paths(statistics, most - 1, settings.smoothing);
  std::vector<RankPath> paths;
  for (const PathValue& each : ranked) paths.push_back(each.path);

  const auto context =
      static_cast<size_t>(std::max<int64_t>(2, std::min(settings.context, model.context - 64)));
  const auto largest = static_cast<int64_t>(paths.size()) + 1;
  const StepTimes times =
      time_sizes(config, model, loaded.heads, runner, paths, context_tokens(dataset, context));
  const std::vector<double> step_ms = interpolate_ms(times);
  TreeCalibration calibration = describe(statistics, ranked);
  calibration.machine = machine_text(llama);
  calibration.rows_ms = time_rows(llama);
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
                       static_cast<int32_t>(settings.top_k), config.tree_file().string());
  tree.heads = loaded.manifest.fingerprint;
  tree.temperatures = temperatures;
  tree.expected_tokens_per_step =
      measure_tree(statistics, tree.paths, StepStarts::Replayed, Random(config.seed));
  tree.calibration = std::move(calibration);
  return tree;
}

void report(const ChoiceTree& tree, const RunConfig& config, bool as_json) {
  const auto& sizes = tree.calibration->sizes;
  const TreeSizePoint& plain = sizes.front();
  const TreeSizePoint& chosen = sizes[static_cast<size_t>(tree.num_nodes()) - 1];
  const Estimate& expected = *tree.expected_tokens_per_step;
  if (as_json) {
    print_json(nlohmann::json{{"tree", config.tree_file().string()},
                              {"nodes", tree.num_nodes()},
                              {"depth", tree.depth()},
                              {"expected_tokens_per_step", expected.value},
                              {"low", expected.low},
                              {"high", expected.high},
                              {"step_ms", chosen.step_ms},
                              {"plain_step_ms", plain.step_ms}});
    return;
  }
  print_note(
      "tree of {} nodes, depth {}: expects {:.2f} tokens per step (95 %: {:.2f} to {:.2f})\n",
      tree.num_nodes(), tree.depth(), expected.value, expected.low, expected.high);
  print_note("a step takes {:.2f} ms, a plain one {:.2f} ms: {:.2f} times as fast is expected\n",
             chosen.step_ms, plain.step_ms, expected.value * plain.step_ms / chosen.step_ms);
  print_note("tree: {}\n", config.tree_file().string());
}

void run_calibrate(const CommonOptions& options) {
  const RunConfig config = read_run_config(options);
  check_output_file(config.tree_file(), ArtifactKind::Tree);
  const ChoiceTree tree = calibrate(config);
  if (interrupted()) return;
  if (config.tree_file().has_parent_path()) make_folder(config.tree_file().parent_path());
  write_choice_tree(config.tree_file(), tree, "Made by: " + same_run_command(options, "calibrate"));
  report(tree, config, options.json);
  print_next(options, "generate", {"What is gravity?"});
}

void compare_prediction(const CommonOptions& options, const std::string& questions) {
  const RunConfig config = read_run_config(options);
  check_drafting(config, config.generate.infer);
  const std::vector<Prompt> asked = read_prompts(questions).prompts;
  const Prediction prediction = predict(config, open_model(config.backbone), asked);
  if (options.json)
    print_json(prediction_json(prediction));
  else
    print_text("{}", prediction_text(prediction));
}

/// Texts to search on: the beginnings of validation answers behind their prompts.
std::vector<AnsweredText> layer_search_texts(const RunConfig& config, const Llama& llama) {
  const DatasetReader dataset = open_dataset(config);
  check_dataset(dataset, config, llama.weights().fingerprint, llama.config());
  const SampleSplit split =
      split_dataset(Random(config.seed), dataset, config.train.config.validation_fraction);
  std::vector<AnsweredText> texts;
  int64_t positions = 0;
  for (const int64_t sample : split.validation.empty() ? split.train : split.validation) {
    if (positions >= kLayerSearchPositions) break;
    const int64_t answer = std::min(std::ssize(dataset.answer(sample)), kLayerSearchAnswer);
    if (answer == 0) continue;
    const int64_t start = dataset.answer_start(sample);
    const auto tokens = dataset.tokens(sample).first(static_cast<size_t>(start + answer));
    texts.push_back({{tokens.begin(), tokens.end()}, start});
    positions += answer;
  }
  if (texts.empty())
    throw UserError(fmt::format("{}: found no answers, expected some; distil more text",
                                dataset.sources()[0].folder.string()));
  return texts;
}

void find_layers(const CommonOptions& options) {
  const RunConfig config = read_run_config(options);
  check_output_file(config.layers_file(), ArtifactKind::LayerChoice);
  const Model model = open_model(config.backbone);
  Llama& llama = *model.llama;
  const auto texts = layer_search_texts(config, llama);
  const LayerChoice choice = search_layers(llama, texts, time_layers(llama));
  if (interrupted()) return;
  make_folder(config.run);
  write_layer_choice(config.layers_file(), choice);
  if (options.json) {
    nlohmann::ordered_json out{{"layers", config.layers_file().string()}};
    out.update(layer_choice_json(choice));
    print_json(out);
    return;
  }
  print_note(
      "without layers {} the first choice is the backbone's in {:.0f} % of places, and a "
      "drafted token takes {:.2f} plain steps\n",
      fmt::join(choice.skip, " "), 100 * choice.agreement, choice.cost);
  print_note("with {} drafted tokens a step {:.2f} times as fast is expected\nlayers: {}\n",
             choice.num_draft, choice.speedup, config.layers_file().string());
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "measure the heads and this machine, and write the choice tree",
          .sections = {"backbone", "train", "calibrate", "generate"},
          .settings = {"--heads", "--tree", "--max-tokens", "--seed", "--device", "--dtype",
                       "--threads", "--context"},
          .examples = {"calibrate model.gguf",
                       "calibrate model.gguf --dtype stored --tree runs/model/tree-stored.yaml"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto questions = std::make_shared<std::string>();
            const auto layers = std::make_shared<bool>(false);
            added.group("Instead");
            added.value("--predict", *questions, "FILE",
                        "print the tokens per step that the tree expects beside those of decoding "
                        "these questions");
            added.flag("--layers", *layers,
                       "find the layers that the drafter layer_skip leaves out (minutes)");
            added.exclude("--layers", "--predict");
            return [questions, layers, &common] {
              if (*layers)
                find_layers(common);
              else if (!questions->empty())
                compare_prediction(common, *questions);
              else
                run_calibrate(common);
            };
          }};
}

}  // namespace medusa
