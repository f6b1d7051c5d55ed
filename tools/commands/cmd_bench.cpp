// medusa bench: methods over the same questions by turns, every answer kept, tables and a page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/folder_lock.h"
#include "base/output.h"
#include "tools/bench/bench.h"
#include "tools/bench/result_folder.h"
#include "tools/bench/result_table.h"
#include "tools/commands/command.h"

namespace medusa {
namespace {

struct BenchOptions {
  std::string questions;
  std::vector<std::string> methods;
  std::vector<double> temperatures;
  std::string rule = "auto";
  std::string out;
  int64_t repeats = 1;
  int64_t limit = 0;
  int32_t slots = 1;
};

RuleKind parse_rule(const std::string& name) {
  for (const auto& [known, kind] : EnumNames<RuleKind>::values)
    if (name == known) return kind;
  throw UserError(fmt::format("--rule: unknown rule '{}', expected one of {}; correct the name",
                              name, enum_choices<RuleKind>()));
}

BenchPlan make_plan(const RunConfig& config, const BenchOptions& options) {
  const InferConfig& infer = config.generate.infer;
  std::vector<std::string> methods = options.methods;
  if (methods.empty()) methods = {enum_name(infer.drafter)};
  BenchPlan plan{.methods = parse_methods(methods),
                 .temperatures = options.temperatures,
                 .rule = parse_rule(options.rule),
                 .repeats = options.repeats,
                 .slots = options.slots};
  if (plan.temperatures.empty()) plan.temperatures = {infer.sampling.temperature};
  std::sort(plan.temperatures.begin(), plan.temperatures.end());
  if (std::adjacent_find(plan.temperatures.begin(), plan.temperatures.end()) !=
      plan.temperatures.end())
    throw UserError("--temperature: a temperature is given twice, expected each once; remove one");
  return plan;
}

void run_bench(const CommonOptions& common, const BenchOptions& options) {
  const RunConfig config = read_run_config(common);
  const BenchPlan plan = make_plan(config, options);
  const Session session = open_session(config.backbone);
  const std::vector<Prompt> questions =
      read_bench_questions(options.questions, options.limit, session);
  const Conditions conditions = bench_conditions(config, session, questions, plan.slots);
  const std::string out = options.out.empty() ? config.run : options.out;
  const FolderLock lock(out, "medusa bench");  // two would lose each other's answers
  const BenchFolder folder(out, conditions);
  for (const auto& file : {folder.answers(), folder.json(), folder.page()}) remove_leftovers(file);

  const auto save = [&](const Measurement& measured) {
    const std::vector<BenchSample> samples = folder.combined(measured.samples, measured.complete);
    BenchResult result{.conditions = conditions,
                       .rows = summarise(samples, config.seed),
                       .failed = measured.failed,
                       .complete = measured.complete,
                       .num_questions = measured.num_questions,
                       .repeats = plan.repeats,
                       .machine = machine_text(*session.llama),
                       .settings = write_config(config)};
    folder.write(result, samples);
    return result;
  };
  const Measurement measured = run_bench(config, session, plan, questions, folder.next_run(), save);
  if (measured.samples.empty())
    throw UserError(
        "bench: interrupted before the first question was answered by all methods, expected at "
        "least one round; run it again");
  const BenchResult result = save(measured);
  if (common.json)
    print_json(bench_json(result));
  else
    print_text("{}page: {}        numbers: {}        answers: {}\n", bench_table(result),
               folder.page().string(), folder.json().string(), folder.answers().string());
}

}  // namespace

Command bench_command() {
  return {"bench",
          "time decoding methods against plain decoding, by turns",
          {"backbone", "generate"},
          [](CLI::App& app, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<BenchOptions>();
            app.add_option("--questions", options->questions,
                           "file of questions (.jsonl), such as configs/bench_questions.jsonl")
                ->required();
            app.add_option("--methods", options->methods,
                           "drafters, with commas between them: " + enum_choices<DrafterKind>() +
                               "; none is always measured; default: generate.drafter")
                ->delimiter(',');
            app.add_option("--temperature", options->temperatures,
                           "one or more, with commas between them; default: generate.temperature")
                ->delimiter(',')
                ->check(CLI::Range(0.0, 100.0));
            app.add_option("--rule", options->rule,
                           "of all methods but none: " + enum_choices<RuleKind>())
                ->capture_default_str();
            app.add_option("--repeat", options->repeats, "ask every question so many times")
                ->check(CLI::PositiveNumber)
                ->capture_default_str();
            app.add_option("--limit", options->limit, "only the first N questions")
                ->check(CLI::PositiveNumber);
            app.add_option("--slots", options->slots,
                           "decode so many questions at the same time; they count as one")
                ->check(CLI::Range(1, 64))
                ->capture_default_str();
            app.add_option("--out", options->out,
                           "folder of bench.json, bench.jsonl and bench.html; default: the run's");
            return [options, &common] { run_bench(common, *options); };
          },
          /*limits_cache=*/true};
}

}  // namespace medusa
