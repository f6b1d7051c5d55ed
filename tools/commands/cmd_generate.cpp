// medusa generate: answers a prompt or a file of questions; --compare times plain against Medusa.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/output.h"
#include "base/utf8.h"
#include "data/prompts.h"
#include "infer/backbone_target.h"
#include "tools/answer.h"
#include "tools/bench/method.h"
#include "tools/commands/command.h"
#include "tools/compare.h"
#include "tools/drafting.h"
#include "tools/output_check.h"
#include "tools/report/report.h"
#include "tools/session.h"

namespace medusa {
namespace {

struct GenerateOptions {
  std::string drafter;
  std::string prompt;
  std::string questions;
  int64_t limit = 0;
  int64_t logprobs = 0;
  bool compare = false;
};

/// A question with its chat template around it.
struct Question {
  std::string id;
  std::string text;
  std::vector<TokenId> tokens;
};

std::vector<Question> read_questions(const GenerateOptions& options, const Session& session) {
  if (!is_valid_utf8(options.prompt))
    throw UserError(
        "--prompt: is not UTF-8, expected text in it; set the terminal to UTF-8, or write the "
        "prompt into a file in UTF-8 and give that with --questions");
  std::vector<Question> out;
  if (!options.prompt.empty())
    out.push_back({"prompt", options.prompt, session.encode({{"user", options.prompt}})});
  if (!options.questions.empty())
    for (const Prompt& prompt : read_prompts(options.questions))
      out.push_back({prompt.id, prompt.messages.back().content, session.encode(prompt.messages)});
  if (out.empty())
    throw UserError(
        "generate: found no prompt, expected one with text in it; give --prompt TEXT or "
        "--questions "
        "FILE");
  if (options.limit > 0 && out.size() > static_cast<size_t>(options.limit))
    out.resize(static_cast<size_t>(options.limit));
  const size_t before = out.size();
  std::erase_if(out, [&](const Question& q) {
    return static_cast<int64_t>(q.tokens.size()) >= session.context;
  });
  if (out.size() < before)
    print_note("{} of {} prompts are longer than the context of {} tokens and are skipped\n",
               before - out.size(), before, session.context);
  if (out.empty())
    throw UserError(
        fmt::format("generate: every prompt is longer than the context of {} tokens, expected "
                    "shorter ones; raise backbone.context",
                    session.context));
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

void generate_answers(const RunConfig& config, const GenerateOptions& options,
                      const Session& session, bool as_json) {
  const std::vector<Question> questions = read_questions(options, session);
  InferConfig infer = config.generate.infer;
  if (options.logprobs > 0) infer.graphs = false;  // the logits are wanted on the host
  BackboneTarget target = open_target(config.backbone, session, 1, session.context);
  const LoadedDrafting drafting = load_drafting(config, infer, session, target);
  const Method method = make_method(infer, drafting.parts(), target);
  AnswerOptions each{.max_new_tokens = infer.max_new_tokens,
                     .stop = config.generate.stop,
                     .logprobs = options.logprobs,
                     .show = {}};
  if (!as_json) each.show = [](std::string_view piece) { print_answer(piece); };
  nlohmann::json all = nlohmann::json::array();
  for (const Question& question : questions) {
    if (interrupted()) break;
    if (!as_json && questions.size() > 1) print_text("[{}] {}\n", question.id, question.text);
    const Answer result = answer(session, *method.decoder, {question.tokens, config.seed}, each);
    if (as_json)
      all.push_back(answer_json(question, result));
    else
      print_text("\n");
    print_summary(result, method.lossless);
  }
  print_note("{}", method.decoder->report());
  if (as_json)
    print_json(nlohmann::json{{"answers", all},
                              {"lossless", method.lossless},
                              {"heads", drafting.heads},
                              {"backbone", session.llama->weights().fingerprint}});
}

void compare_methods(const RunConfig& config, const GenerateOptions& options,
                     const Session& session, bool as_json) {
  check_output_file(config.compare_file(), ArtefactKind::Comparison);
  check_output_file(config.report_file(), ArtefactKind::Page);
  std::vector<std::vector<TokenId>> prompts;
  for (Question& question : read_questions(options, session))
    prompts.push_back(std::move(question.tokens));
  InferConfig medusa = config.generate.infer;
  medusa.drafter = DrafterKind::Medusa;
  BackboneTarget target = open_target(config.backbone, session, 1, session.context);
  const LoadedDrafting drafting = load_drafting(config, medusa, session, target);
  const Comparison comparison = compare(config, session, target, drafting, prompts);
  const nlohmann::json out = comparison_json(comparison, config, session);
  make_folder(config.run);
  write_file(config.compare_file(), json_text(out, 1) + "\n");
  write_run_report(config.run, config.report_file());
  if (as_json)
    print_json(out);
  else
    print_text("{}report: {}        numbers: {}\n", comparison_table(comparison),
               config.report_file().string(), config.compare_file().string());
}

void run_generate(const CommonOptions& common, const GenerateOptions& options) {
  CommonOptions settings = common;
  if (!options.drafter.empty()) settings.sets.push_back("generate.drafter=" + options.drafter);
  const RunConfig config = read_run_config(settings);
  const Session session = open_session(config.backbone);
  if (options.compare)
    compare_methods(config, options, session, common.json);
  else
    generate_answers(config, options, session, common.json);
}

}  // namespace

Command generate_command() {
  return {"generate",
          "answer a prompt, or compare plain and Medusa decoding",
          {"backbone", "generate"},
          [](CLI::App& app, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<GenerateOptions>();
            app.add_option("--drafter", options->drafter,
                           enum_choices<DrafterKind>() + " (sets generate.drafter)");
            app.add_option("--prompt", options->prompt, "the user's message");
            app.add_option("--questions", options->questions,
                           "file of prompts (.jsonl), each answered by itself; -: standard input");
            app.add_option("--limit", options->limit, "only the first N questions")
                ->check(CLI::PositiveNumber);
            app.add_option(
                   "--logprobs", options->logprobs,
                   "with --json: log-probabilities of each token and of the N most probable ones")
                ->check(CLI::Range(1, 100));
            app.add_flag("--compare", options->compare,
                         "decode every prompt plainly and with Medusa, alternately; print a table "
                         "and write the report");
            return [options, &common] { run_generate(common, *options); };
          },
          /*limits_cache=*/true};
}

}  // namespace medusa
