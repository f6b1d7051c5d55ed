#include "tools/bench/bench.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/output.h"
#include "infer/backbone_target.h"
#include "runtime/drafting.h"
#include "tools/bench/rounds.h"
#include "tools/measure/resources.h"
#include "tools/run/drafter_choice.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSaveEvery(60);  // what a crash can cost

/// A method of the bench, or why it is none.
struct BenchCase {
  DrafterKind drafter;
  double temperature;
  std::optional<Method> method;
  std::string problem;
  std::vector<BenchSample> samples;
};

/// Loads what drafters need once for all that need the same.
class BenchCases {
 public:
  BenchCases(const RunConfig& config, const BenchPlan& plan, const Model& model,
             BackboneTarget& target)
      : target_(target) {
    for (const double temperature : plan.temperatures)
      for (const DrafterKind kind : plan.methods) {
        BenchCase& bench_case = list_.emplace_back(BenchCase{kind, temperature, {}, {}, {}});
        const InferConfig settings = method_settings(config, plan, kind, temperature);
        try {
          check_drafting(config, settings);
          bench_case.method = make_method(settings, parts(config, settings, model), target);
        } catch (const UserError& error) {
          if (kind == DrafterKind::None) throw;
          bench_case.problem = error.what();
        }
      }
  }

  std::vector<BenchCase>& list() { return list_; }

 private:
  DraftParts parts(const RunConfig& config, const InferConfig& settings, const Model& model) {
    const DraftNeeds needs = needs_of(settings);
    if (!loaded_.contains(needs))
      loaded_.emplace(needs, load_drafting(config.draft_files(), settings, model, target_, cost_));
    const LoadedDrafting& loaded = loaded_.at(needs);
    if (loaded.cost) cost_ = loaded.cost;
    return loaded.parts();
  }

  BackboneTarget& target_;
  std::map<DraftNeeds, LoadedDrafting> loaded_;  // by what is needed
  std::shared_ptr<const StepCost> cost_;         // of all; null: nobody has asked yet
  std::vector<BenchCase> list_;
};

AnswerRecord record(const Answer& answer) {
  const DecodeTimes& times = answer.times;
  return {.text = answer.text,
          .tokens = answer.tokens,
          .finish = finish_name(answer),
          .steps = answer.stats.steps,
          .proposed = answer.stats.proposed,
          .accepted = answer.stats.accepted,
          .emitted_per_step = answer.stats.emitted_per_step,
          .prefill_s = times.prefill_s,
          .parts_s = {times.propose_s, times.verify_s, times.accept_s, times.commit_s}};
}

/// Questions that are decoded at the same time.
using Group = std::span<const Prompt>;

std::vector<Group> groups_of(const std::vector<Prompt>& questions, size_t slots) {
  std::vector<Group> groups;
  for (size_t i = 0; i < questions.size(); i += slots)
    groups.push_back(Group(questions).subspan(i, std::min(slots, questions.size() - i)));
  return groups;
}

std::string id_of(Group group) {
  std::string id = group.front().id;
  for (const Prompt& question : group.subspan(1)) id += "+" + question.id;
  return id;
}

std::string category_of(Group group) {
  for (const Prompt& question : group)
    if (question.category != group.front().category) return "mixed";
  return group.front().category;
}

BenchSample make_sample(const BenchCase& bench_case, Group group, const Round& round,
                        const std::vector<Answer>& answers) {
  BenchSample sample{.method = bench_case.method->drafter(),
                     .rule = bench_case.method->rule_name(),
                     .temperature = bench_case.temperature,
                     .same_text = bench_case.method->same_text(),
                     .question = static_cast<int64_t>(round.question),
                     .id = id_of(group),
                     .category = category_of(group),
                     .repeat = round.repeat,
                     .answers = {}};
  for (const Answer& answer : answers) sample.answers.push_back(record(answer));
  return sample;
}

/// The tables name them, too, at the end.
void note_what_cannot_run(const std::vector<BenchCase>& cases) {
  for (const BenchCase& each : cases)
    if (!each.problem.empty())
      print_note("note: method '{}' at temperature {} is left out: {}\n", enum_name(each.drafter),
                 each.temperature, each.problem);
}

/// A bench of plain decoding alone is of use to nobody who asked for another method.
void refuse_if_none_runs(const std::vector<BenchCase>& cases) {
  const BenchCase* failed = nullptr;
  for (const BenchCase& each : cases) {
    if (each.drafter == DrafterKind::None) continue;
    if (each.problem.empty()) return;
    if (failed == nullptr) failed = &each;
  }
  if (failed != nullptr)
    throw UserError(fmt::format("bench: method '{}' cannot run: {}", enum_name(failed->drafter),
                                failed->problem));
}

Measurement collect(const std::vector<BenchCase>& cases, size_t num_groups) {
  Measurement out;
  out.num_questions = static_cast<int64_t>(num_groups);
  for (const BenchCase& each : cases) {
    if (each.problem.empty())
      out.samples.insert(out.samples.end(), each.samples.begin(), each.samples.end());
    else
      out.failed.push_back({enum_name(each.drafter), each.temperature, each.problem});
  }
  return out;
}

}  // namespace

std::vector<DrafterKind> parse_methods(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const auto& [name, kind] : EnumNames<DrafterKind>::values) known.emplace_back(name);
  std::vector<DrafterKind> out{DrafterKind::None};
  for (auto name = names.begin(); name != names.end(); ++name) {
    const auto found = std::find(known.begin(), known.end(), *name);
    if (found == known.end()) {
      const std::string close = nearest_word(*name, known);
      throw UserError(fmt::format(
          "--methods: unknown method '{}'{}, expected some of {}; correct "
          "the name",
          *name, close.empty() ? "" : " (did you mean '" + close + "'?)", fmt::join(known, ", ")));
    }
    if (std::find(names.begin(), name, *name) != name)
      throw UserError(fmt::format(
          "--methods: '{}' is given twice, expected each method once; remove one", *name));
    const auto kind = EnumNames<DrafterKind>::values[static_cast<size_t>(found - known.begin())];
    if (kind.second != DrafterKind::None) out.push_back(kind.second);
  }
  return out;
}

InferConfig method_settings(const RunConfig& config, const BenchPlan& plan, DrafterKind kind,
                            double temperature) {
  InferConfig settings = config.generate.infer;
  settings.drafter = kind;
  settings.rule = kind == DrafterKind::None ? RuleKind::Auto : plan.rule;
  settings.sampling.temperature = temperature;
  return settings;
}

std::vector<Prompt> fitting_questions(std::vector<Prompt> questions, int64_t limit,
                                      const Model& model) {
  if (limit > 0 && questions.size() > static_cast<size_t>(limit))
    questions.resize(static_cast<size_t>(limit));
  const size_t before = questions.size();
  std::erase_if(questions, [&](const Prompt& question) {
    return static_cast<int64_t>(model.encode(question.messages).size()) >= model.context;
  });
  if (questions.empty())
    throw UserError(
        fmt::format("questions: every one is longer than the context of {} tokens, expected "
                    "shorter ones; raise --context",
                    model.context));
  if (questions.size() < before)
    print_note("{} of {} questions are longer than the context of {} tokens and are skipped\n",
               before - questions.size(), before, model.context);
  return questions;
}

Measurement run_bench(const RunConfig& config, const Model& model, const BenchPlan& plan,
                      const std::vector<Prompt>& questions, int64_t run,
                      const std::function<void(const Measurement&)>& so_far) {
  const auto slots = static_cast<size_t>(plan.slots);
  const std::vector<Group> groups = groups_of(questions, slots);
  BackboneTarget target = model.open_target(plan.slots, model.context);
  BenchCases cases(config, plan, model, target);
  std::vector<BenchCase>& list = cases.list();
  std::vector<int64_t> peaks(list.size());

  const auto run_method = [&](size_t i, size_t group,
                              int32_t max_new_tokens) -> std::vector<Answer> {
    BenchCase& bench_case = list[i];
    if (!bench_case.problem.empty()) return {};
    target.forget_ended();  // nobody's prompts are computed for the next
    const AnswerOptions options{
        .max_new_tokens = max_new_tokens, .stop = config.generate.stop, .show = {}};
    std::vector<SeededPrompt> conversations;
    for (const Prompt& question : groups[group]) {
      const size_t place = group * slots + conversations.size();
      conversations.push_back({&question, Random(config.seed).child(place).seed()});
    }
    reset_peak_memory(model.llama->device());
    try {
      std::vector<Answer> answers;
      for (std::vector<Answer>& turns :
           run_conversations(model, *bench_case.method->decoder, conversations, options))
        std::move(turns.begin(), turns.end(), std::back_inserter(answers));
      peaks[i] = peak_memory(model.llama->device()).where_computed();
      return answers;
    } catch (const UserError& error) {
      if (bench_case.drafter == DrafterKind::None) throw;
      bench_case.problem = error.what();
      return {};
    }
  };
  auto saved = Clock::now();
  const auto finished = [&](const Round& round) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].problem.empty() || round.answers[i].empty()) continue;
      BenchSample sample = make_sample(list[i], groups[round.question], round, round.answers[i]);
      sample.run = run;
      sample.peak_bytes = peaks[i];
      list[i].samples.push_back(std::move(sample));
    }
    if (Clock::now() - saved < kSaveEvery) return;
    Measurement measured = collect(list, groups.size());
    measured.complete = false;
    so_far(measured);
    saved = Clock::now();
  };
  const int32_t most = config.generate.infer.max_new_tokens;
  warm_up("bench", list.size(), [&](size_t i) { run_method(i, 0, std::min(kWarmUpTokens, most)); });
  refuse_if_none_runs(list);
  note_what_cannot_run(list);
  const bool complete = run_rounds(
      {"bench", list.size(), groups.size(), plan.repeats},
      [&](size_t i, size_t group) { return run_method(i, group, most); }, finished);
  for (const BenchCase& each : list)
    if (each.method) print_note("{}", each.method->decoder->report());
  Measurement result = collect(list, groups.size());
  result.complete = complete;
  return result;
}

}  // namespace medusa
