// medusa bench: methods over the same questions by turns, every answer kept, tables and a page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/folder_lock.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/yaml_fields.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_conditions.h"
#include "tools/bench/result.h"
#include "tools/bench/result_folder.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/commands/questions.h"
#include "tools/compare/compare.h"
#include "tools/report/report.h"
#include "tools/run/drafter_choice.h"
#include "tools/run/open_model.h"
#include "tools/version.h"

namespace medusa {
namespace {

struct BenchOptions {
  std::string questions;
  std::vector<std::string> methods;
  std::vector<double> temperatures;
  RuleKind rule = RuleKind::Auto;
  std::string out;
  int64_t repeats = 1;
  int64_t limit = 0;
  int32_t slots = 1;
  bool markdown = false;
  bool fresh = false;
};

/// The command that measures the same again.
std::string typed(const CommonOptions& common, const BenchOptions& options) {
  std::vector<std::string> words;
  if (!options.questions.empty()) words.insert(words.end(), {"--questions", options.questions});
  if (!options.methods.empty())
    words.insert(words.end(), {"--methods", fmt::format("{}", fmt::join(options.methods, ","))});
  if (!options.temperatures.empty())
    words.insert(words.end(),
                 {"--temperature", fmt::format("{}", fmt::join(options.temperatures, ","))});
  if (options.rule != RuleKind::Auto)
    words.insert(words.end(), {"--rule", enum_name(options.rule)});
  if (options.repeats > 1) words.insert(words.end(), {"--repeat", std::to_string(options.repeats)});
  if (options.limit > 0) words.insert(words.end(), {"--limit", std::to_string(options.limit)});
  if (options.slots > 1) words.insert(words.end(), {"--batch", std::to_string(options.slots)});
  for (const GivenSetting& given : common.settings)
    if (given.key.starts_with("generate.") && given.key != "generate.heads" &&
        given.key != "generate.tree")
      for (const std::string& text : given.texts) words.insert(words.end(), {given.option, text});
  return same_run_command(common, "bench", words);
}

/// Those asked for, ascending.
std::vector<double> temperatures_of(const RunConfig& config, const BenchOptions& options) {
  std::vector<double> out = options.temperatures;
  if (out.empty()) out = {config.generate.infer.sampling.temperature};
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    throw UserError("--temperature: a temperature is given twice, expected each once; remove one");
  return out;
}

BenchPlan make_plan(const BenchOptions& options, const std::vector<double>& temperatures,
                    DrafterKind chosen) {
  std::vector<std::string> methods = options.methods;
  if (methods.empty()) methods = {enum_name(chosen)};
  return {.methods = parse_methods(methods),
          .temperatures = temperatures,
          .rule = options.rule,
          .repeats = options.repeats,
          .slots = options.slots};
}

/// Methods that cannot run for a reason that the files tell, before the model is loaded.
/// @throws UserError  none of those asked for can.
void check_methods(const RunConfig& config, const BenchPlan& plan) {
  std::string first_problem;
  bool any = false;
  for (const DrafterKind kind : plan.methods) {
    if (kind == DrafterKind::None) continue;
    InferConfig infer = config.generate.infer;
    infer.drafter = kind;
    try {
      check_drafting(config, infer);
      any = true;
    } catch (const UserError& error) {
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  if (!any && !first_problem.empty()) throw UserError(first_problem);
}

void run_bench(const CommonOptions& common, const BenchOptions& options) {
  RunConfig config = read_run_config(common);
  take_calibrated_thresholds(config, config.generate.infer);
  const std::vector<double> temperatures = temperatures_of(config, options);
  const DrafterKind chosen =
      options.methods.empty() ? chosen_drafter(config, DrafterKind::Medusa,
                                               DrafterKind::PromptLookup, same_run_commands(common))
                              : DrafterKind::None;
  const BenchPlan plan = make_plan(options, temperatures, chosen);
  if (!options.methods.empty()) {
    InferConfig infer = config.generate.infer;
    infer.rule = options.rule;
    check_parts_are_read(common, plan.methods, infer);
  }
  check_methods(config, plan);
  const std::vector<Prompt> asked =
      options.questions.empty() ? sample_questions() : read_questions(options.questions).prompts;
  const Model model = open_model(config.backbone);
  const std::vector<Prompt> questions = fitting_questions(asked, options.limit, model);
  const std::string out = options.out.empty() ? config.run : options.out;
  const FolderLock lock(out, "medusa bench");  // two would lose each other's answers
  const BenchFolder folder(out, bench_conditions(config, model, questions, plan.slots),
                           method_conditions(config, plan), options.fresh);
  for (const auto& file : {folder.answers(), folder.json(), folder.page()}) remove_leftovers(file);

  const auto save = [&](const Measurement& measured) {
    const std::vector<BenchSample> samples = folder.combined(measured.samples, measured.complete);
    BenchResult result{.conditions = folder.conditions(),
                       .rows = summarize(samples, config.seed),
                       .failed = measured.failed,
                       .complete = measured.complete,
                       .num_questions = measured.num_questions,
                       .repeats = plan.repeats,
                       .machine = machine_text(*model.llama),
                       .settings = write_config(config)};
    folder.write(result, samples);
    return result;
  };
  const Measurement measured = run_bench(config, model, plan, questions, folder.next_run(), save);
  if (measured.samples.empty())
    throw Interrupted(
        "bench: interrupted before the first answer, expected at least one; run it again");
  const BenchResult result = save(measured);
  refresh_run_report(out);
  if (common.json)
    print_json(bench_json(result));
  else if (options.markdown)
    print_text("{}", bench_markdown(result, {.date = date_text(),
                                             .version = version_text(),
                                             .command = typed(common, options)}));
  else
    print_text("{}page: {}        numbers: {}        answers: {}\n", bench_table(result),
               folder.page().string(), folder.json().string(), folder.answers().string());
}

}  // namespace

Command bench_command() {
  return {.name = "bench",
          .summary = "time decoding methods against plain decoding, by turns",
          .sections = {"backbone", "generate"},
          .settings = {"--heads", "--tree", "--top-p", "--top-k", "--max-tokens", "--seed",
                       "--device", "--dtype", "--threads", "--context", "--cache-mb"},
          .examples = {"bench model.gguf --methods medusa,prompt_lookup,merge",
                       "bench model.gguf --questions configs/bench_questions.jsonl --markdown"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<BenchOptions>();
            added.group("What is compared");
            added.value("--questions", options->questions, "FILE",
                        "prompts; -: standard input; else twelve built in");
            added.value("--limit", options->limit, "N", "only the first N", at_least<int64_t>(1));
            added.value("--repeat", options->repeats, "N", "ask every question so many times (1)",
                        at_least<int64_t>(1));
            added.list("--methods,--drafter", options->methods, "NAME,…",
                       "drafters; none is always measured (the one that generate would take)");
            added.offer(enum_words<DrafterKind>());
            added.value("--rule", options->rule, "NAME", "of all methods but none (auto)");
            added.list("--temperature", options->temperatures, "X,…", "one or more (0)",
                       between(0.0, 100.0));
            added.value("--batch,--slots", options->slots, "N",
                        "questions that are decoded at the same time and count as one (1)",
                        between(1, 64));
            added.group("Output");
            added.value("--out", options->out, "FOLDER",
                        "of bench.json, bench.jsonl and bench.html; else the run's");
            added.flag("--markdown", options->markdown,
                       "print a page for docs/benchmarks: Markdown with machine, date, conditions");
            added.flag("--fresh", options->fresh, "leave out what earlier runs measured there");
            return [options, &common] { run_bench(common, *options); };
          }};
}

}  // namespace medusa
