#include "tools/measure/drafter_race.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/output.h"
#include "data/dataset/sample_order.h"
#include "tools/compare/compare.h"
#include "tools/run/drafter_choice.h"

namespace medusa {
namespace {

constexpr int32_t kMostTokens = 96;  // of an answer: the race takes a part of a minute

/// Without what merges drafts, if that needs files which are not there.
std::vector<ComparedMethod> runnable_methods(const RunConfig& config) {
  const InferConfig& settings = config.generate.infer;
  std::vector<ComparedMethod> methods = greedy_methods(settings);
  InferConfig merged = settings;
  merged.drafter = compared_drafter(settings);
  try {
    check_drafting(config, merged);
  } catch (const UserError& error) {
    print_note("note: drafter '{}' is not tried: {}\n", enum_name(merged.drafter), error.what());
    std::erase_if(methods,
                  [&](const ComparedMethod& each) { return each.drafter == merged.drafter; });
  }
  return methods;
}

/// A tree in a file of its own, from which drafters are loaded: that of the run is written when its
/// race is over.
class RacedTree {
 public:
  RacedTree(const ChoiceTree& tree, std::filesystem::path place) : file_(std::move(place)) {
    file_ += ".racing";
    write_choice_tree(file_, tree, "Is removed when the drafters have been compared");
  }
  ~RacedTree() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  RacedTree(const RacedTree&) = delete;
  RacedTree& operator=(const RacedTree&) = delete;

  std::string file() const { return file_.string(); }

 private:
  std::filesystem::path file_;
};

}  // namespace

std::vector<std::vector<TokenId>> validation_prompts(const RunConfig& config,
                                                     const DatasetReader& dataset,
                                                     const Model& model, int64_t most,
                                                     int64_t answer_tokens) {
  std::vector<std::vector<TokenId>> prompts;
  const SampleSplit split =
      split_dataset(Random(config.seed), dataset, config.train.config.validation_fraction);
  for (const int64_t sample : split.validation) {
    if (std::ssize(prompts) >= most) break;
    const int64_t length = dataset.answer_start(sample);
    if (length + answer_tokens > model.context) continue;
    const auto prompt = dataset.tokens(sample).first(static_cast<size_t>(length));
    prompts.emplace_back(prompt.begin(), prompt.end());
  }
  return prompts;
}

bool race_drafters(const RunConfig& given, const DatasetReader& dataset, const Model& model,
                   ChoiceTree& tree) {
  RunConfig config = given;
  InferConfig& settings = config.generate.infer;
  settings.max_new_tokens = std::min(settings.max_new_tokens, kMostTokens);
  const auto prompts = validation_prompts(config, dataset, model, config.calibrate.race_prompts,
                                          settings.max_new_tokens);
  if (prompts.empty()) return true;
  const RacedTree raced(tree, config.tree_file());
  config.generate.tree = raced.file();
  const std::vector<ComparedMethod> methods = runnable_methods(config);
  settings.drafter = methods.back().drafter;
  BackboneTarget target = model.open_target(1, model.context);
  const LoadedDrafting drafting = load_drafting(config.draft_files(), settings, model, target);
  const Comparison comparison = compare(config, model, target, drafting, methods, prompts);
  if (!comparison.complete) return false;
  std::vector<DrafterSpeed>& speeds = tree.calibration->drafters;
  for (const MethodResult& each : comparison.methods) {
    const Interval interval = each.speedup_95.value_or(Interval{each.speedup, each.speedup});
    speeds.push_back({each.drafter, {each.speedup, interval.low, interval.high}});
  }
  const auto slower = [](const DrafterSpeed& a, const DrafterSpeed& b) {
    return a.speedup.value < b.speedup.value;
  };
  tree.drafter = std::max_element(speeds.begin(), speeds.end(), slower)->drafter;
  return true;
}

}  // namespace medusa
