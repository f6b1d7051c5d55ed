#include "tools/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "infer/backbone_target.h"
#include "tools/answer.h"
#include "tools/bench/method.h"
#include "tools/bench/rounds.h"
#include "tools/bench/statistics.h"

namespace medusa {
namespace {

constexpr double kTypicalTemperature =
    0.7;  // where the settings ask for greedy; typical is for sampling

/// A method and everything its answers add up to.
struct Runner {
  Method method;
  int64_t steps = 0, emitted = 0;
  std::vector<double> rates;  // tokens per second of each prompt
  MethodResult result;
};

Runner make_runner(const RunConfig& config, DrafterKind drafter, RuleKind rule,
                   const DraftParts& parts, BackboneTarget& target) {
  InferConfig settings = config.generate.infer;
  settings.drafter = drafter;
  settings.rule = rule;
  if (rule == RuleKind::Greedy) settings.sampling.temperature = 0;
  if (rule == RuleKind::Typical && settings.sampling.temperature == 0)
    settings.sampling.temperature = kTypicalTemperature;
  Runner out;
  out.method = make_method(settings, parts, target);
  out.result.drafter = out.method.drafter();
  out.result.rule = out.method.rule_name();
  out.result.temperature = out.method.temperature();
  out.result.lossless = out.method.lossless;
  return out;
}

void add(DecodeTimes& sum, const DecodeTimes& more) {
  sum.prefill_s += more.prefill_s;
  sum.propose_s += more.propose_s;
  sum.verify_s += more.verify_s;
  sum.accept_s += more.accept_s;
  sum.commit_s += more.commit_s;
}

void add(Runner& runner, const Answer& answer) {
  runner.steps += answer.stats.steps;
  runner.emitted += answer.stats.emitted;
  runner.rates.push_back(static_cast<double>(answer.stats.emitted) / answer.times.decode_s());
  add(runner.result.times, answer.times);
  auto& histogram = runner.result.emitted_per_step;
  histogram.resize(std::max(histogram.size(), answer.stats.emitted_per_step.size()));
  for (size_t n = 0; n < answer.stats.emitted_per_step.size(); ++n)
    histogram[n] += answer.stats.emitted_per_step[n];
}

void summarise(Runner& runner, const Runner& plain) {
  MethodResult& out = runner.result;
  const double seconds = out.times.decode_s(), plain_seconds = plain.result.times.decode_s();
  out.tokens_per_s = static_cast<double>(runner.emitted) / seconds;
  out.tokens_per_step = static_cast<double>(runner.emitted) / static_cast<double>(runner.steps);
  out.step_overhead = seconds / static_cast<double>(runner.steps) /
                      (plain_seconds / static_cast<double>(plain.steps));
  out.speedup = out.tokens_per_s / (static_cast<double>(plain.emitted) / plain_seconds);
  std::vector<double> ratios;
  for (size_t i = 0; i < runner.rates.size(); ++i)
    ratios.push_back(runner.rates[i] / plain.rates[i]);
  out.speedup_low = quantile(ratios, 0.25);
  out.speedup_high = quantile(ratios, 0.75);
}

}  // namespace

Comparison compare(const RunConfig& config, const Session& session, BackboneTarget& target,
                   const LoadedDrafting& drafting,
                   const std::vector<std::vector<TokenId>>& prompts) {
  std::vector<Runner> runners;
  runners.push_back(make_runner(config, DrafterKind::None, RuleKind::Greedy, {}, target));
  runners.push_back(
      make_runner(config, DrafterKind::Medusa, RuleKind::Greedy, drafting.parts(), target));
  runners.push_back(
      make_runner(config, DrafterKind::Medusa, RuleKind::Typical, drafting.parts(), target));
  if (prompts.empty())
    throw UserError(
        "--compare: no prompt fits into the context, expected at least one; give other prompts");
  const AnswerOptions options{.max_new_tokens = config.generate.infer.max_new_tokens,
                              .stop = config.generate.stop,
                              .show = {}};
  const auto play = [&](size_t i, size_t prompt) -> std::vector<Answer> {
    target.forget_ended();  // nobody's prompts are computed for the next
    return {answer(session, *runners[i].method.decoder, {prompts[prompt], config.seed}, options)};
  };

  Comparison out;
  out.dtype = session.llama->number_format();
  const auto finished = [&](const Round& round) {
    const Answer& plain = round.answers[0][0];
    for (size_t i = 0; i < runners.size(); ++i) {
      const Answer& answer = round.answers[i][0];
      add(runners[i], answer);
      runners[i].result.same_text += answer.tokens == plain.tokens ? 1 : 0;
    }
    ++out.num_prompts;
  };
  const RoundPlan plan{"compare", runners.size(), prompts.size(), /*repeats=*/1};
  out.complete = play_rounds(plan, play, finished);
  if (out.num_prompts == 0)
    throw UserError("--compare: interrupted before the first prompt was finished; run it again");
  for (Runner& runner : runners) {
    summarise(runner, runners[0]);
    out.methods.push_back(runner.result);
  }
  return out;
}

std::string comparison_table(const Comparison& comparison) {
  std::string text =
      fmt::format("{:<18}  {:>8}   {:>11}   {:>13}   {:>8}   {}\n", comparison.dtype, "tokens/s",
                  "tokens/step", "step overhead", "speed-up", "same text as plain");
  for (size_t i = 0; i < comparison.methods.size(); ++i) {
    const MethodResult& m = comparison.methods[i];
    const std::string name = m.drafter == "none" ? "plain" : m.drafter + ", " + m.rule;
    const std::string same =
        i == 0 || !m.lossless ? "–" : fmt::format("{} / {}", m.same_text, comparison.num_prompts);
    text += fmt::format("{:<18}  {:>8.1f}   {:>11.2f}   {:>13.2f}   {:>8.2f}   {:>9}\n", name,
                        m.tokens_per_s, m.tokens_per_step, m.step_overhead, m.speedup, same);
  }
  if (!comparison.complete)
    text += fmt::format("interrupted: only the first {} prompts\n", comparison.num_prompts);
  return text;
}

nlohmann::json comparison_json(const Comparison& comparison, const RunConfig& config,
                               const Session& session) {
  nlohmann::json methods = nlohmann::json::array();
  for (const MethodResult& m : comparison.methods) {
    nlohmann::json row{{"drafter", m.drafter},
                       {"rule", m.rule},
                       {"dtype", comparison.dtype},
                       {"temperature", m.temperature},
                       {"tokens_per_s", m.tokens_per_s},
                       {"tokens_per_step", m.tokens_per_step},
                       {"step_overhead", m.step_overhead},
                       {"speedup", m.speedup},
                       {"speedup_quartiles", {m.speedup_low, m.speedup_high}},
                       {"lossless", m.lossless},
                       {"num_prompts", comparison.num_prompts},
                       {"emitted_per_step", m.emitted_per_step}};
    row["same_text"] = m.lossless ? nlohmann::json(m.same_text) : nlohmann::json(nullptr);
    row["times"] = {{"prefill_s", m.times.prefill_s},
                    {"propose_s", m.times.propose_s},
                    {"verify_s", m.times.verify_s},
                    {"accept_s", m.times.accept_s},
                    {"commit_s", m.times.commit_s}};
    methods.push_back(std::move(row));
  }
  return {{"methods", methods},
          {"complete", comparison.complete},
          {"machine", {{"description", machine_text(*session.llama)}}},
          {"settings",
           {{"yaml", write_config(config)}, {"backbone", session.llama->weights().fingerprint}}}};
}

}  // namespace medusa
