#include "tools/measure/acceptance.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/stderr_progress.h"
#include "heads/head_statistics.h"
#include "heads/tree/step_sum.h"
#include "heads/tree/tree_search.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "infer/rules/greedy_rule.h"
#include "runtime/drafting.h"
#include "tools/bench/bench.h"

namespace medusa {

GreedyAnswer decode_greedy(BackboneTarget& target, const DrafterFactory& make_drafter,
                           std::vector<TokenId> prompt, const DecodeLimits& limits,
                           bool keep_hidden) {
  GreedyAnswer out;
  DecodeRequest request{std::move(prompt), limits, Random(0), {}};
  request.emit = [&](const EmittedToken& token) {
    out.tokens.push_back(token.id);
    if (keep_hidden) out.hidden.push_back(token.output->hidden[token.row].clone());
    return !interrupted();
  };
  const DecodeStats stats = decode_one(target, GreedyRule(), make_drafter, request).stats;
  out.steps = {static_cast<double>(stats.emitted), static_cast<double>(stats.steps)};
  return out;
}

void add_drafts(HeadStatistics& statistics, HeadsRunner& runner, const GreedyAnswer& answer) {
  const auto count = static_cast<int64_t>(answer.tokens.size()) - runner.num_heads();
  if (count <= 0) return;
  const at::Tensor hidden = at::stack(answer.hidden).narrow(0, 0, count);
  statistics.add_answer(runner.draft_along(hidden, answer.tokens).tokens, answer.tokens);
}

namespace {

HeadAcceptance summarize(const HeadStatistics& statistics) {
  HeadAcceptance out;
  out.num_answers = statistics.num_answers();
  out.num_positions = statistics.num_positions();
  const auto positions = static_cast<double>(statistics.num_positions());
  for (const std::vector<int64_t>& counts : statistics.head_counts()) {
    int64_t right = 0;
    for (const int64_t count : counts) right += count;
    out.top_1.push_back(static_cast<double>(counts.front()) / positions);
    out.top_5.push_back(static_cast<double>(right) / positions);
  }
  std::vector<RankPath> chain;
  for (int64_t depth = 1; depth <= statistics.num_heads(); ++depth)
    chain.emplace_back(static_cast<size_t>(depth), 0);
  out.chain_tokens_per_step = tokens_per_step(statistics, chain, StepStarts::Replayed);
  return out;
}

}  // namespace

HeadAcceptance measure_acceptance(const Model& model, const MedusaHeads& heads,
                                  const std::vector<std::string>& prompts, int32_t max_new_tokens) {
  constexpr int64_t kDrafts = 5;
  BackboneTarget target(*model.llama, 1, model.context);
  HeadsRunner runner(heads, model.llama->weights(), std::min(kDrafts, heads.output_rows()),
                     model.llama->execution());
  InferConfig infer;
  infer.drafter = DrafterKind::None;
  const DrafterFactory plain = make_drafter_factory(infer, {});
  HeadStatistics statistics(runner.num_heads(), runner.top_k());
  Progress progress(stderr_progress(), "measure", "answers", static_cast<int64_t>(prompts.size()));
  int64_t done = 0;
  for (const std::string& prompt : prompts) {
    const std::vector<TokenId> tokens = model.encode({{"user", prompt}});
    const auto room = model.context - static_cast<int64_t>(tokens.size()) - 1;
    if (room <= 0) continue;
    const DecodeLimits limits{
        .max_new_tokens = static_cast<int32_t>(std::min<int64_t>(max_new_tokens, room)),
        .eos = model.eos};
    const GreedyAnswer answer = decode_greedy(target, plain, tokens, limits, /*keep_hidden=*/true);
    if (interrupted()) break;
    add_drafts(statistics, runner, answer);
    progress.update(++done);
  }
  progress.finish();
  if (interrupted() && statistics.num_positions() == 0)
    throw Interrupted(
        "doctor: interrupted before the first answer was finished, expected at least one; run the "
        "same command again");
  if (statistics.num_positions() == 0)
    throw UserError(fmt::format(
        "doctor: no answer is longer than the {} heads look ahead, expected some; ask other "
        "questions with --questions or raise --tokens",
        runner.num_heads()));
  return summarize(statistics);
}

nlohmann::ordered_json quality_json(const std::vector<HeadQuality>& heads) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const HeadQuality& head : heads)
    out.push_back({{"loss", head.loss},
                   {"top_1", head.top_1},
                   {"top_5", head.top_5},
                   {"top_10", head.top_10}});
  return out;
}

void print_quality(const std::vector<HeadQuality>& heads) {
  for (size_t k = 0; k < heads.size(); ++k)
    print_note("head {}: top-1 {:.3f}  top-5 {:.3f}  top-10 {:.3f}\n", k, heads[k].top_1,
               heads[k].top_5, heads[k].top_10);
}

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
