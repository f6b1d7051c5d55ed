// medusa calibrate: measures which drafts are right and what a step costs, and writes the choice
// tree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/sample_order.h"
#include "data/prompts.h"
#include "heads/heads_checkpoint.h"
#include "runtime/calibrator.h"
#include "runtime/check_dataset.h"
#include "runtime/kept_out.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/commands/questions.h"
#include "tools/inspect/inspectors.h"
#include "tools/measure/acceptance.h"
#include "tools/measure/drafter_race.h"
#include "tools/measure/layer_search.h"
#include "tools/measure/typical_sweep.h"
#include "tools/run/drafter_choice.h"
#include "tools/run/open_model.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

constexpr int64_t kLayerSearchPositions = 384;  // that agreement is measured on
constexpr int64_t kLayerSearchAnswer = 64;      // tokens of one answer

ChoiceTree calibrate(const RunConfig& config, const DatasetReader& dataset, const Model& model) {
  CalibratorOptions options;
  options.config = config.calibrate;
  options.heads = config.heads_folder();
  options.validation_fraction = config.train.config.validation_fraction;
  options.seed = config.seed;
  options.infer = config.generate.infer;
  return Calibrator(model, std::move(options)).run(dataset);
}

void report(const ChoiceTree& tree, const RunConfig& config, bool as_json) {
  const auto& sizes = tree.calibration->sizes;
  const TreeSizePoint& plain = sizes.front();
  const TreeSizePoint& chosen = sizes[static_cast<size_t>(tree.num_nodes()) - 1];
  const Estimate& expected = *tree.expected_tokens_per_step;
  if (as_json) {
    nlohmann::json out{{"tree", config.tree_file().string()},
                       {"nodes", tree.num_nodes()},
                       {"depth", tree.depth()},
                       {"expected_tokens_per_step", expected.value},
                       {"low", expected.low},
                       {"high", expected.high},
                       {"step_ms", chosen.step_ms},
                       {"plain_step_ms", plain.step_ms}};
    for (const DrafterSpeed& each : tree.calibration->drafters)
      out["speedups"][each.drafter] = each.speedup.value;
    if (!tree.drafter.empty()) out["drafter"] = tree.drafter;
    print_json(out);
    return;
  }
  print_note(
      "tree of {} nodes, depth {}: expects {:.2f} tokens per step (95 %: {:.2f} to {:.2f})\n",
      tree.num_nodes(), tree.depth(), expected.value, expected.low, expected.high);
  const bool raced = !tree.calibration->drafters.empty();  // then speeds were measured
  print_note("a step takes {:.2f} ms, a plain one {:.2f} ms{}\n", chosen.step_ms, plain.step_ms,
             raced ? ""
                   : fmt::format(": {:.2f} times as fast is expected",
                                 expected.value * plain.step_ms / chosen.step_ms));
  for (const DrafterSpeed& each : tree.calibration->drafters)
    if (each.drafter != enum_name(DrafterKind::None))
      print_note("drafter {}: {:.2f} times as fast as plain decoding (95 %: {:.2f} to {:.2f})\n",
                 each.drafter, each.speedup.value, each.speedup.low, each.speedup.high);
  if (!tree.drafter.empty())
    print_note("where no drafter is named, {}\n", tree.drafter == enum_name(DrafterKind::None)
                                                      ? "decoding is plain: it was the fastest"
                                                      : fmt::format("{} decodes", tree.drafter));
  print_note("tree: {}\n", config.tree_file().string());
}

bool has_thresholds(const std::filesystem::path& tree) {
  try {
    return std::filesystem::exists(tree) && read_choice_tree(tree).typical;
  } catch (const UserError&) {  // an empty or damaged one is replaced
    return false;
  }
}

void run_calibrate(const CommonOptions& options) {
  const RunConfig config = read_run_config(options);
  check_output_tree(config);
  const DatasetReader dataset = open_dataset(config);  // what is cheap to refuse comes first
  check_heads(config);
  const Model model = open_model(config.backbone);
  ChoiceTree tree = calibrate(config, dataset, model);
  if (interrupted()) return;
  if (config.tree_file().has_parent_path()) make_folder(config.tree_file().parent_path());
  if (!race_drafters(config, dataset, model, tree))
    throw Interrupted(
        fmt::format("calibrate: interrupted before the drafters were compared, nothing is written "
                    "to {}; run it again",
                    config.tree_file().string()));
  if (has_thresholds(config.tree_file()))
    print_note(
        "note: the thresholds of typical acceptance were measured with the tree before and are "
        "gone with it; medusa calibrate --typical measures them again\n");
  write_choice_tree(config.tree_file(), tree, "Made by: " + same_run_command(options, "calibrate"));
  report(tree, config, options.json);
  print_next(options, "generate", {"What is gravity?"});
}

void compare_prediction(const CommonOptions& options, const std::string& questions) {
  const RunConfig config = read_run_config(options);
  check_drafting(config, config.generate.infer);
  const std::vector<Prompt> asked = read_questions(questions).prompts;
  note_later_turns(asked);
  const Prediction prediction = predict(config, open_model(config.backbone), asked);
  if (options.json)
    print_json(prediction_json(prediction));
  else
    print_text("{}", prediction_text(prediction));
}

/// Texts to search on: the beginnings of validation answers behind their prompts.
std::vector<AnsweredText> layer_search_texts(const RunConfig& config, const Llama& llama) {
  const DatasetReader dataset = open_dataset(config);
  check_dataset(dataset, config.backbone.model, llama.weights().fingerprint, llama.config());
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

/// What made the tree, from its file's first line, and what adds thresholds to it.
std::string made_with_thresholds(const std::string& tree, const CommonOptions& options) {
  const std::string mark = "# Made by: ", then = ", then ";
  std::string made = "a command that is not known";
  if (tree.starts_with(mark)) made = tree.substr(mark.size(), tree.find('\n') - mark.size());
  return "Made by: " + made.substr(0, made.find(then)) + then +
         same_run_command(options, "calibrate", {"--typical"});
}

/// Adds the sweep to the tree, which is there.
void find_typical(const CommonOptions& options) {
  RunConfig config = read_run_config(options);
  InferConfig& settings = config.generate.infer;
  settings.drafter = DrafterKind::Medusa;
  check_drafting(config, settings);
  check_output_file(config.tree_file(), ArtifactKind::Tree);
  const DatasetReader dataset = open_dataset(config);
  check_kept_out(config.heads_folder().string(), read_heads_manifest(config.heads_folder()),
                 dataset, config.seed, config.train.config.validation_fraction);
  const Model model = open_model(config.backbone);
  check_dataset(dataset, config.backbone.model, model.llama->weights().fingerprint,
                model.llama->config());
  const auto prompts = validation_prompts(config, dataset, model, config.calibrate.typical_prompts,
                                          settings.max_new_tokens);
  if (prompts.empty())
    throw UserError(fmt::format(
        "{}: found no validation prompt that leaves room for {} tokens, expected some; lower "
        "--max-tokens, or train with a larger train.validation_fraction",
        dataset.sources()[0].folder.string(), settings.max_new_tokens));
  BackboneTarget target = model.open_target(1, model.context);
  const std::string before = read_file(config.tree_file());
  const LoadedDrafting drafting = load_drafting(config.draft_files(), settings, model, target);
  ChoiceTree tree = read_choice_tree(config.tree_file());
  tree.typical = sweep_typical(config, target, drafting, model.eos, prompts);
  const bool complete = !interrupted(), is_same_tree = read_file(config.tree_file()) == before;
  if (!complete || !is_same_tree) print_note("{}", typical_sweep_text(*tree.typical));
  if (!complete)
    throw Interrupted(
        fmt::format("--typical: interrupted before all prompts were answered, nothing is written "
                    "to {}; run it again",
                    config.tree_file().string()));
  if (!is_same_tree)
    throw UserError(
        fmt::format("{}: found another tree than the one that the thresholds were tried with, "
                    "expected the same, since it would be replaced; run medusa calibrate --typical "
                    "again",
                    config.tree_file().string()));
  write_choice_tree(config.tree_file(), tree, made_with_thresholds(before, options));
  if (options.json)
    print_json(inspect_tree(config.tree_file()).at("typical"));
  else
    print_text("{}tree: {}\n", typical_sweep_text(*tree.typical), config.tree_file().string());
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
            const auto typical = std::make_shared<bool>(false);
            added.group("Instead");
            added.value("--predict", *questions, "FILE",
                        "print the tokens per step that the tree expects beside those of decoding "
                        "these questions");
            added.flag("--layers", *layers,
                       "find the layers that the drafter layer_skip leaves out (minutes)");
            added.flag("--typical", *typical,
                       "try thresholds of typical acceptance with the tree that is there, and keep "
                       "the best ones in it (minutes)");
            added.exclude("--layers", "--predict");
            added.exclude("--layers", "--typical");
            added.exclude("--typical", "--predict");
            return [questions, layers, typical, &common] {
              if (*layers)
                find_layers(common);
              else if (*typical)
                find_typical(common);
              else if (!questions->empty())
                compare_prediction(common, *questions);
              else
                run_calibrate(common);
            };
          }};
}

}  // namespace medusa
