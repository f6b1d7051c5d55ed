#include "tools/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "base/yaml_fields.h"
#include "infer/backbone_target.h"
#include "runtime/answer.h"
#include "tools/bench/rounds.h"
#include "tools/report/reported_comparison.h"
#include "tools/version.h"

namespace medusa {
namespace {

constexpr double kTypicalTemperature =
    0.7;  // where the settings ask for greedy; typical is for sampling

/// A method and everything its answers add up to.
struct Runner {
  Method method;
  size_t plain = 0;  // the runner that it is compared with
  int64_t steps = 0;
  std::vector<double> emitted, seconds;  // [prompts]
  MethodResult result;
};

Runner make_runner(const RunConfig& config, DrafterKind drafter, RuleKind rule,
                   const DraftParts& parts, BackboneTarget& target) {
  InferConfig settings = config.generate.infer;
  settings.drafter = drafter;
  settings.rule = rule;
  if (rule == RuleKind::Greedy) settings.sampling.temperature = 0;
  if (rule != RuleKind::Greedy && settings.sampling.temperature == 0)
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
  runner.emitted.push_back(static_cast<double>(answer.stats.emitted));
  runner.seconds.push_back(answer.times.decode_s());
  add(runner.result.times, answer.times);
  auto& histogram = runner.result.emitted_per_step;
  histogram.resize(std::max(histogram.size(), answer.stats.emitted_per_step.size()));
  for (size_t n = 0; n < answer.stats.emitted_per_step.size(); ++n)
    histogram[n] += answer.stats.emitted_per_step[n];
}

std::string name_of(const MethodResult& method) {
  return method_name(method.drafter, method.rule, method.temperature);
}

void summarize(Runner& runner, const Runner& plain, uint64_t seed) {
  std::vector<PairedWork> work;
  double emitted = 0, seconds = 0, plain_seconds = 0;
  for (size_t i = 0; i < runner.emitted.size(); ++i) {
    work.push_back({runner.emitted[i], runner.seconds[i], plain.emitted[i], plain.seconds[i]});
    emitted += runner.emitted[i];
    seconds += runner.seconds[i];
    plain_seconds += plain.seconds[i];
  }
  MethodResult& out = runner.result;
  const auto steps = static_cast<double>(runner.steps);
  out.tokens_per_s = emitted / seconds;
  out.tokens_per_step = emitted / steps;
  out.step_overhead = seconds / steps / (plain_seconds / static_cast<double>(plain.steps));
  out.speedup = speedup(work);
  if (&runner != &plain) out.speedup_95 = speedup_interval(work, seed);
}

}  // namespace

DrafterKind compared_drafter(const InferConfig& settings) {
  const auto& merged = settings.merge.drafters;
  return std::find(merged.begin(), merged.end(), DrafterKind::Medusa) != merged.end()
             ? DrafterKind::Merge
             : DrafterKind::Medusa;
}

std::vector<ComparedMethod> greedy_methods(const InferConfig& settings) {
  std::vector<ComparedMethod> methods{{DrafterKind::None, RuleKind::Greedy},
                                      {DrafterKind::Medusa, RuleKind::Greedy}};
  if (compared_drafter(settings) == DrafterKind::Merge)
    methods.push_back({DrafterKind::Merge, RuleKind::Greedy});
  return methods;
}

std::vector<ComparedMethod> all_methods(const InferConfig& settings) {
  std::vector<ComparedMethod> methods = greedy_methods(settings);
  methods.push_back({DrafterKind::None, RuleKind::Match});
  methods.push_back({DrafterKind::Medusa, RuleKind::Typical});
  return methods;
}

Comparison compare(const RunConfig& config, const Model& model, BackboneTarget& target,
                   const LoadedDrafting& drafting, const std::vector<ComparedMethod>& methods,
                   const std::vector<std::vector<TokenId>>& prompts) {
  MEDUSA_ASSERT(!prompts.empty() && !methods.empty() && methods[0].drafter == DrafterKind::None);
  std::vector<Runner> runners;
  size_t last_plain = 0;
  for (const auto& [drafter, rule] : methods) {
    if (drafter == DrafterKind::None) last_plain = runners.size();
    runners.push_back(make_runner(config, drafter, rule,
                                  drafter == DrafterKind::None ? DraftParts{} : drafting.parts(),
                                  target));
    runners.back().plain = last_plain;
  }
  const auto run_method = [&](size_t i, size_t prompt, int32_t most) -> std::vector<Answer> {
    target.forget_ended();  // nobody's prompts are computed for the next
    const AnswerOptions options{.max_new_tokens = most, .stop = config.generate.stop, .show = {}};
    // Of its own: with the same random numbers answers to two prompts would be one sample.
    const uint64_t seed = Random(config.seed).child(prompt).seed();
    return {answer(model, *runners[i].method.decoder, {prompts[prompt], seed}, options)};
  };

  Comparison out;
  out.dtype = model.llama->dtype_name();
  out.heads = drafting.heads;
  const auto finished = [&](const Round& round) {
    if (!round.whole) return;
    for (size_t i = 0; i < runners.size(); ++i) {
      const Answer& answer = round.answers[i][0];
      const Answer& plain = round.answers[runners[i].plain][0];
      add(runners[i], answer);
      runners[i].result.same_text += answer.tokens == plain.tokens ? 1 : 0;
      const MethodResult& method = runners[i].result;
      if (out.num_prompts == 0 && method.temperature == 0)
        out.example.push_back({name_of(method), answer.times.decode_s(), answer.steps});
    }
    ++out.num_prompts;
  };
  const RoundPlan plan{"compare", runners.size(), prompts.size(), /*repeats=*/1};
  const int32_t most = config.generate.infer.max_new_tokens;
  warm_up("compare", runners.size(),
          [&](size_t i) { run_method(i, 0, std::min(kWarmUpTokens, most)); });
  out.complete = run_rounds(
      plan, [&](size_t i, size_t prompt) { return run_method(i, prompt, most); }, finished);
  if (out.num_prompts == 0) return out;
  for (Runner& runner : runners) {
    summarize(runner, runners[runner.plain], config.seed);
    out.methods.push_back(runner.result);
  }
  return out;
}

std::string comparison_table(const Comparison& comparison) {
  std::string text = fmt::format("{:<24}  {:>8}   {:>11}   {:>13}   {:>8}   {:>12}   {}\n",
                                 comparison.dtype, "tokens/s", "tokens/step", "step overhead",
                                 "speed-up", "95 %", "same text as plain");
  for (const MethodResult& m : comparison.methods) {
    const std::string interval =
        m.speedup_95 ? fmt::format("{:.2f} to {:.2f}", m.speedup_95->low, m.speedup_95->high) : "–";
    const bool promises = m.lossless && m.drafter != "none";
    const std::string same =
        promises ? fmt::format("{} / {}", m.same_text, comparison.num_prompts) : "–";
    text += fmt::format("{:<24}  {:>8.1f}   {:>11.2f}   {:>13.2f}   {:>8.2f}   {:>12}   {:>9}\n",
                        name_of(m), m.tokens_per_s, m.tokens_per_step, m.step_overhead, m.speedup,
                        interval, same);
  }
  text +=
      "speed-up: over plain decoding at the same temperature; 95 %: paired bootstrap over the "
      "prompts\n";
  if (!comparison.complete)
    text += fmt::format("interrupted: only the first {} prompts\n", comparison.num_prompts);
  return text;
}

namespace {

nlohmann::json example_json(const std::vector<ExampleAnswer>& answers,
                            const std::string& question) {
  nlohmann::json list = nlohmann::json::array();
  for (const ExampleAnswer& each : answers) {
    nlohmann::json steps = nlohmann::json::array();
    for (const AnswerStep& step : each.steps) steps.push_back({step.num_tokens, step.text});
    list.push_back({{"method", each.method}, {"seconds", each.seconds}, {"steps", steps}});
  }
  return {{"question", question}, {"answers", list}};
}

}  // namespace

nlohmann::json comparison_json(const Comparison& comparison, const std::string& question,
                               const RunConfig& config, const Model& model) {
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
                       {"lossless", m.lossless},
                       {"num_prompts", comparison.num_prompts},
                       {"emitted_per_step", m.emitted_per_step}};
    if (m.speedup_95) row["speedup_95"] = {m.speedup_95->low, m.speedup_95->high};
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
          {"example", example_json(comparison.example, question)},
          {"date", date_text()},
          {"version", version_text()},
          {"machine", {{"description", machine_text(*model.llama)}}},
          {"settings",
           {{"yaml", write_config(config)},
            {"backbone", model.llama->weights().fingerprint},
            {"heads", comparison.heads}}}};
}

}  // namespace medusa
