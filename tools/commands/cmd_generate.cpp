// medusa generate: answers a prompt or a file of questions; --compare times plain against Medusa.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/output.h"
#include "base/utf8.h"
#include "data/prompts.h"
#include "data/text_file.h"
#include "infer/backbone_target.h"
#include "runtime/drafting.h"
#include "runtime/generator.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/commands/questions.h"
#include "tools/compare/compare.h"
#include "tools/report/report.h"
#include "tools/report/reported_comparison.h"
#include "tools/run/drafter_choice.h"
#include "tools/run/open_model.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

struct GenerateOptions {
  std::string first, second;  // arguments without a name
  std::string prompt;
  std::string questions;
  int64_t limit = 0;
  int64_t logprobs = 0;
  int32_t batch = 1;
  bool compare = false;
};

/// A question with its chat template around it.
struct Question {
  std::string id;
  std::string text;
  std::vector<TokenId> tokens;
};

/// All of standard input as one message.
std::string read_standard_input() {
  std::string text = read_text("-");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  if (text.empty())
    throw UserError(
        "-: standard input is empty, expected a prompt; write one into the pipe, or give it as "
        "text");
  return text;
}

/// What is asked, before the model is there.
std::vector<Prompt> read_prompts_of(const GenerateOptions& options) {
  std::vector<Prompt> out;
  if (!options.prompt.empty()) {
    const std::string text = options.prompt == "-" ? read_standard_input() : options.prompt;
    if (!is_valid_utf8(text))
      throw UserError(
          "--prompt: is not UTF-8, expected text in it; set the terminal to UTF-8, or write the "
          "prompt into a file in UTF-8 and give that with --questions");
    out.push_back(
        {.id = "prompt", .category = "", .messages = {{"user", text}}, .later_turns = {}});
  }
  if (!options.questions.empty())
    for (Prompt& prompt : read_questions(options.questions).prompts)
      out.push_back(std::move(prompt));
  if (out.empty() && options.compare) out = sample_questions();
  if (out.empty())
    throw UserError(
        "generate: no prompt given, expected one behind the model, --prompt TEXT, --questions "
        "FILE, "
        "or - for standard input; see medusa generate --help");
  if (options.limit > 0 && out.size() > static_cast<size_t>(options.limit))
    out.resize(static_cast<size_t>(options.limit));
  note_later_turns(out);
  return out;
}

std::vector<Question> encode_questions(const std::vector<Prompt>& prompts, const Model& model) {
  std::vector<Question> out;
  for (const Prompt& prompt : prompts)
    out.push_back({prompt.id, prompt.messages.back().content, model.encode(prompt.messages)});
  const size_t before = out.size();
  std::erase_if(out, [&](const Question& q) {
    return static_cast<int64_t>(q.tokens.size()) >= model.context;
  });
  if (out.size() < before)
    print_note("{} of {} prompts are longer than the context of {} tokens and are skipped\n",
               before - out.size(), before, model.context);
  if (out.empty())
    throw UserError(
        fmt::format("generate: every prompt is longer than the context of {} tokens, expected "
                    "shorter ones; shorten them, or raise backbone.context if the model was "
                    "trained for more",
                    model.context));
  return out;
}

nlohmann::json answer_json(const Question& question, const Answer& answer) {
  nlohmann::json out{{"id", question.id},
                     {"prompt", question.text},
                     {"text", answer.text},
                     {"tokens", answer.tokens},
                     {"finish", finish_name(answer)},
                     {"stats",
                      {{"steps", answer.stats.steps},
                       {"emitted", answer.stats.emitted},
                       {"proposed", answer.stats.proposed},
                       {"accepted", answer.stats.accepted},
                       {"prefill_s", answer.times.prefill_s},
                       {"decode_s", answer.times.decode_s()}}}};
  for (const TokenLogprobs& token : answer.logprobs) {
    nlohmann::json row{{"logprob", token.chosen}};
    for (const auto& [id, logprob] : token.largest)
      row["top"].push_back({{"id", id}, {"logprob", logprob}});
    out["logprobs"].push_back(std::move(row));
  }
  return out;
}

void print_summary(const Answer& answer, bool lossless) {
  const double seconds = answer.times.decode_s();
  print_note("{} tokens, {:.1f} tokens/s, {:.2f} tokens per step, prompt read in {:.0f} ms{}{}\n",
             answer.stats.emitted, static_cast<double>(answer.stats.emitted) / seconds,
             static_cast<double>(answer.stats.emitted) / static_cast<double>(answer.stats.steps),
             answer.times.prefill_s * 1000, lossless ? "" : ", not lossless",
             answer.stats.finish == FinishReason::Context
                 ? "; the context is full, which ended the text"
                 : "");
}

/// Of a text that is shown as it grows, or of several that are shown when all are there.
void print_answered(const Question& question, const Answer& result, bool several, bool shown,
                    bool lossless) {
  if (several && !shown) print_text("[{}] {}\n", question.id, question.text);
  if (!shown) print_answer(result.text);
  print_text("\n");
  print_summary(result, lossless);
}

GeneratorOptions generator_options(const RunConfig& config, const InferConfig& infer,
                                   const GenerateOptions& options) {
  GeneratorOptions out;
  out.infer = infer;
  out.files = config.draft_files();
  out.stop = config.generate.stop;
  out.sequences = options.batch;
  out.logprobs = options.logprobs;
  return out;
}

void generate_answers(const RunConfig& config, const InferConfig& infer,
                      const GenerateOptions& options, const std::vector<Prompt>& prompts,
                      const Model& model, bool as_json) {
  const std::vector<Question> questions = encode_questions(prompts, model);
  Generator generator(model, generator_options(config, infer, options));
  const bool shown = !as_json && options.batch == 1;
  Generator::ShowEach show;
  if (shown)
    show = [](size_t, std::string_view piece) {
      print_answer(piece);
      return true;
    };
  nlohmann::json all = nlohmann::json::array();
  const auto batch = static_cast<size_t>(options.batch);
  for (size_t begin = 0; begin < questions.size() && !interrupted(); begin += batch) {
    const auto group =
        std::span(questions).subspan(begin, std::min(batch, questions.size() - begin));
    std::vector<AnswerRequest> requests;
    for (const Question& question : group) requests.push_back({question.tokens, config.seed});
    if (shown && questions.size() > 1) print_text("[{}] {}\n", group[0].id, group[0].text);
    const std::vector<Answer> answers = generator.answer(requests, show);
    for (size_t i = 0; i < group.size(); ++i)
      if (as_json)
        all.push_back(answer_json(group[i], answers[i]));
      else
        print_answered(group[i], answers[i], questions.size() > 1, shown, generator.lossless());
  }
  print_note("{}", generator.report());
  if (as_json)
    print_json(nlohmann::json{{"answers", all},
                              {"lossless", generator.lossless()},
                              {"heads", generator.heads()},
                              {"backbone", model.llama->weights().fingerprint}});
}

/// What an interrupted comparison does not replace.
bool holds_whole_comparison(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return false;
  try {
    return read_comparison(file).complete;
  } catch (const UserError&) {  // damaged
    return false;
  }
}

void compare_methods(const RunConfig& config, const std::vector<Prompt>& asked, const Model& model,
                     bool as_json) {
  std::vector<std::vector<TokenId>> prompts;
  std::string first;
  for (Question& question : encode_questions(asked, model)) {
    if (prompts.empty()) first = question.text;
    prompts.push_back(std::move(question.tokens));
  }
  InferConfig all = config.generate.infer;
  all.drafter = compared_drafter(all);
  BackboneTarget target = model.open_target(1, model.context);
  const LoadedDrafting drafting = load_drafting(config.draft_files(), all, model, target);
  const Comparison comparison =
      compare(config, model, target, drafting, all_methods(config.generate.infer), prompts);
  if (comparison.num_prompts == 0)
    throw Interrupted("--compare: interrupted before the first prompt was finished; run it again");
  const nlohmann::json out = comparison_json(comparison, first, config, model);
  const bool written = comparison.complete || !holds_whole_comparison(config.compare_file());
  if (written) {
    make_folder(config.run);
    write_file(config.compare_file(), json_text(out, 1) + "\n");
    write_run_report(config.run, config.report_file());
  }
  if (as_json)
    print_json(out);
  else if (!written)
    print_text("{}", comparison_table(comparison));
  else
    print_text("{}report: {}        numbers: {}\n", comparison_table(comparison),
               config.report_file().string(), config.compare_file().string());
  if (!written)
    throw Interrupted(
        fmt::format("--compare: interrupted, {} keeps the whole comparison that it "
                    "holds; run it again",
                    config.compare_file().string()));
}

/// MODEL PROMPT, MODEL alone, or PROMPT alone where an option names the model.
void place_arguments(GenerateOptions& options, CommonOptions& common) {
  const bool model_named = !common.model.empty() || !common.config.empty();
  const bool asked = !options.prompt.empty() || !options.questions.empty();
  if (options.first.empty()) return;
  if (options.second.empty() && model_named && !asked) {
    options.prompt = options.first;
    return;
  }
  if (!common.model.empty() || (asked && !options.second.empty()))
    throw UserError(
        fmt::format("generate: found '{}' besides {}, expected each once; leave one out",
                    options.second.empty() ? options.first : options.second,
                    !common.model.empty() ? "--model " + common.model : "--prompt or --questions"));
  common.model = options.first;
  if (!options.second.empty()) options.prompt = options.second;
}

/// What was typed and would change nothing.
void refuse_idle_options(const CommonOptions& common, const GenerateOptions& options) {
  if (options.logprobs > 0 && !options.compare && !common.json)
    throw UserError(
        fmt::format("--logprobs {}: found no --json, expected it, as the text alone shows no "
                    "numbers; add --json",
                    options.logprobs));
  if (!options.prompt.empty() && options.questions.empty() &&
      (options.limit > 0 || (options.batch > 1 && !options.compare)))
    throw UserError(
        fmt::format("{}: found one prompt, expected --questions with several; leave it out",
                    options.limit > 0 ? "--limit" : "--batch"));
  if (!options.compare) return;
  std::string idle;
  if (options.logprobs > 0) idle = fmt::format("--logprobs {}", options.logprobs);
  if (options.batch > 1) idle = fmt::format("--batch {}", options.batch);
  for (const GivenSetting& each : common.settings)
    if (each.option == "--drafter" || each.option == "--rule")
      idle = each.option + " " + each.texts[0];
  if (!idle.empty())
    throw UserError(
        fmt::format("generate --compare: found {}, expected none, as it decodes one prompt at a "
                    "time by methods of its own; leave it out, or choose methods with medusa bench",
                    idle));
}

void run_generate(const CommonOptions& given, GenerateOptions options) {
  CommonOptions common = given;
  place_arguments(options, common);
  refuse_idle_options(common, options);
  RunConfig config = read_run_config(common);
  const std::vector<Prompt> prompts = read_prompts_of(options);
  take_calibrated_thresholds(config, config.generate.infer);
  InferConfig infer = config.generate.infer;
  infer.drafter = options.compare ? compared_drafter(infer)
                                  : chosen_drafter(config, DrafterKind::Medusa, DrafterKind::None,
                                                   same_run_commands(common));
  infer.validate();
  if (config.generate.names_drafter && !options.compare)
    check_parts_are_read(common, {infer.drafter}, infer);
  check_drafting(config, infer);
  if (options.compare) {
    check_output_file(config.compare_file(), ArtifactKind::Comparison);
    check_output_file(config.report_file(), ArtifactKind::Page);
  }
  const Model model = open_model(config.backbone);
  if (options.compare)
    compare_methods(config, prompts, model, common.json);
  else
    generate_answers(config, infer, options, prompts, model, common.json);
}

}  // namespace

Command generate_command() {
  return {
      .name = "generate",
      .summary = "answer a prompt, or compare plain and Medusa decoding",
      .sections = {"backbone", "generate"},
      .settings = {"--drafter", "--rule", "--heads", "--tree", "--temperature", "--top-p",
                   "--top-k", "--max-tokens", "--stop", "--seed", "--device", "--dtype",
                   "--threads", "--context", "--cache-mb"},
      .takes_model = false,
      .says_run = false,
      .examples = {"generate model.gguf \"Write a poem.\" --temperature 0.7 --max-tokens 100",
                   "generate model.gguf --compare        # plain and Medusa side by side"},
      .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
        const auto options = std::make_shared<GenerateOptions>();
        added.positional("MODEL", options->first,
                         "a .gguf file, or a folder with config.json and .safetensors");
        added.positional("PROMPT", options->second, "the user's message; -: from standard input");
        added.group("Prompts and answers");
        added.value("--prompt", options->prompt, "TEXT", "the same as PROMPT");
        added.value("--questions", options->questions, "FILE",
                    "prompts, each answered by itself (.jsonl, .json, .txt)");
        added.value("--limit", options->limit, "N", "only the first N", at_least<int64_t>(1));
        added.value("--batch", options->batch, "N", "questions that are answered together (1)",
                    between(1, 64));
        added.flag("--compare", options->compare,
                   "decode plainly and with Medusa, by turns; a table, and the run's report");
        added.value("--logprobs", options->logprobs, "N",
                    "with --json: log-probabilities of each token and of the N most probable ones",
                    between<int64_t>(1, 100));
        return [options, &common] { run_generate(common, *options); };
      }};
}

}  // namespace medusa
