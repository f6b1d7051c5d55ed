#include "tools/measure/predict.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/stderr_progress.h"
#include "heads/head_statistics.h"
#include "heads/tree/step_sum.h"
#include "heads/tree/tree_search.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "runtime/drafting.h"
#include "tools/bench/bench.h"
#include "tools/measure/greedy_answers.h"

namespace medusa {

Prediction predict(const RunConfig& config, const Model& model,
                   const std::vector<Prompt>& questions) {
  InferConfig medusa = config.generate.infer;
  medusa.drafter = DrafterKind::Medusa;
  medusa.medusa = {};  // the choice tree, whatever the settings say: that is what is predicted
  const ChoiceTree tree = read_choice_tree(config.tree_file());
  BackboneTarget target(*model.llama, 1, model.context);
  const LoadedDrafting drafting = load_drafting(config.draft_files(), medusa, model, target);
  InferConfig none = medusa;
  none.drafter = DrafterKind::None;
  const DrafterFactory plain = make_drafter_factory(none, {});
  const DrafterFactory heads = make_drafter_factory(medusa, drafting.parts());
  const std::vector<Prompt> asked = fitting_questions(questions, 0, model);

  const DecodeLimits limits{.max_new_tokens = config.generate.infer.max_new_tokens,
                            .eos = model.eos};
  HeadStatistics statistics(drafting.runner->num_heads(), drafting.runner->top_k());
  std::vector<StepSum> measured;
  Progress progress(stderr_progress(), "predict", "questions", static_cast<int64_t>(asked.size()));
  for (const Prompt& question : asked) {
    const std::vector<TokenId> prompt = model.encode(question.messages);
    const GreedyAnswer answer = decode_greedy(target, plain, prompt, limits, /*keep_hidden=*/true);
    const GreedyAnswer fast = decode_greedy(target, heads, prompt, limits, /*keep_hidden=*/false);
    if (interrupted()) break;
    add_drafts(statistics, *drafting.runner, answer);
    measured.push_back(fast.steps);
    progress.update(static_cast<int64_t>(measured.size()));
  }
  progress.finish();
  if (statistics.num_answers() == 0)
    throw UserError(fmt::format(
        "--predict: no answer is longer than the {} heads look ahead, expected some; ask other "
        "questions or raise --max-tokens",
        drafting.runner->num_heads()));
  const Random random(config.seed);
  return {tree.expected_tokens_per_step,
          measure_tree(statistics, tree.paths, StepStarts::Everywhere, random),
          measure_tree(statistics, tree.paths, StepStarts::Replayed, random),
          tokens_per_step(measured, random), static_cast<int64_t>(measured.size())};
}

std::string prediction_text(const Prediction& prediction) {
  std::string text = fmt::format("tokens per step, greedy, {} answers (95 %)       ÷ measured\n",
                                 prediction.num_answers);
  const double measured = prediction.measured.value;
  const auto row = [&](const char* name, const Estimate& estimate) {
    text += fmt::format("{:<46}{:.3f} ({:.3f} to {:.3f}){:>8.3f}\n", name, estimate.value,
                        estimate.low, estimate.high, estimate.value / measured);
  };
  if (prediction.calibrated)
    row("predicted: the tree file, validation answers", *prediction.calibrated);
  row("predicted: these answers, replayed", prediction.replayed);
  row("these answers, every position a step", prediction.everywhere);
  row("measured: decoded with the tree", prediction.measured);
  return text;
}

nlohmann::json prediction_json(const Prediction& prediction) {
  const auto estimate = [&](const Estimate& each) {
    return nlohmann::json{{"tokens_per_step", each.value},
                          {"low", each.low},
                          {"high", each.high},
                          {"ratio_to_measured", each.value / prediction.measured.value}};
  };
  nlohmann::json out{{"num_answers", prediction.num_answers},
                     {"calibrated", nullptr},
                     {"every_position", estimate(prediction.everywhere)},
                     {"replayed", estimate(prediction.replayed)},
                     {"measured", estimate(prediction.measured)}};
  if (prediction.calibrated) out["calibrated"] = estimate(*prediction.calibrated);
  return out;
}

}  // namespace medusa
