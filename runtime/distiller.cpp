#include "runtime/distiller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/interrupt.h"
#include "base/yaml_fields.h"
#include "data/dataset/shard_file.h"
#include "data/question_filter.h"
#include "runtime/generation.h"
#include "runtime/question_lines.h"
#include "runtime/self_prompt.h"

namespace medusa {
namespace {

constexpr double kBytesOfMegabyte = 1e6;

DistillerOptions checked_distilling(DistillerOptions options) {
  options.validate();
  return options;
}

const Model& loaded(const Model& model) {
  expect_loaded(model, "Distiller");
  return model;
}

/// The settings that decide what the samples hold: a dataset goes on with these alone.
std::string sampling_text(DistillConfig config) {
  config.batch = 0;  // does not change the text
  // Prompts are told apart by their own fingerprint, and how states are kept by itself. Datasets
  // from before there was a choice, or min-p, go on.
  std::istringstream all(write_config(config));
  std::string text = "prompts: []\n";
  for (std::string line; std::getline(all, line);)
    if (!line.starts_with("states_") && !line.starts_with("text_tokens") &&
        !line.ends_with("min_p: 0"))
      text += line + "\n";
  return text;
}

constexpr std::string_view kFirstComputed = "backbone.dtype: ";

/// What the shards that are there were computed in; `own` if there are none. Empty: they are from
/// before it was kept.
std::string computed_before(const std::filesystem::path& folder, const std::string& own) {
  if (!std::filesystem::is_directory(folder)) return own;
  const auto shards = find_shards(folder);
  if (shards.empty()) return own;
  const std::string text = ShardFile(shards.begin()->second).header().info.sampling;
  return text.substr(std::min(text.find(kFirstComputed), text.size()));
}

std::string in_one_line(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  for (size_t at; (at = text.find('\n')) != std::string::npos;) text.replace(at, 1, ", ");
  return text;
}

std::vector<std::string> keep_good(const std::vector<std::string>& questions,
                                   const NoteFunction& note) {
  QuestionFilter filter;
  std::vector<std::string> kept;
  for (const std::string& question : questions)
    if (filter.add(question) == QuestionFilter::Verdict::Kept) kept.push_back(question);
  const QuestionCounts& counts = filter.counts();
  if (note)
    note(fmt::format(
        "{} questions kept; dropped: {} unfinished or empty, {} degenerate, {} near-duplicates",
        counts.kept, counts.empty, counts.degenerate, counts.duplicate));
  return kept;
}

struct MostTokens {
  int64_t document, conversation;  // of a sample
};

/// @param refused  grows by the answers that cannot be learnt from.
std::vector<Sample> all_samples(const Model& model, std::span<const WrittenText> texts,
                                const MostTokens& most, int64_t& refused) {
  AnswerRefusals no;
  std::vector<Sample> samples;
  if (std::ranges::any_of(texts, &WrittenText::is_conversation))
    expect_chat_template(model, "Distiller");
  for (const WrittenText& text : texts)
    for (Sample& sample :
         samples_of_text(*model.tokenizer, model.chat, text,
                         text.is_conversation() ? most.conversation : most.document, no))
      samples.push_back(std::move(sample));
  if (samples.empty())
    throw UserError(fmt::format(
        "distill --prefill: none of {} texts can be learnt from ({} answers empty, {} not as the "
        "chat template writes them, {} too long), expected some; choose the template of the model "
        "that answered with backbone.chat_template, or raise backbone.context if the model was "
        "trained for more",
        texts.size(), no.empty, no.altered, no.too_long));
  refused += no.total();
  return samples;
}

}  // namespace

void DistillerOptions::validate() const {
  expect_named(dataset, "DistillerOptions::dataset");
  check_config(config, "distill");
  if (part && (part->index < 0 || part->index >= part->count))
    throw UserError(
        fmt::format("DistillerOptions::part is {}/{}, expected an index from 0 to count - 1; give "
                    "each part its own",
                    part->index, part->count));
  if (part && config.max_answer_tokens > 0)
    throw UserError(fmt::format(
        "distill.max_answer_tokens is {} with --shard, found a limit that no part can count alone, "
        "expected 0; bound the prompts instead (distill.self_prompts, or the prompt files)",
        config.max_answer_tokens));
  if (part && config.states_budget_mb)
    throw UserError(fmt::format(
        "distill.states_budget_mb is {} with --shard, found a limit that no part can count alone, "
        "expected null; set record_hidden to false in all parts, or states_dtype to int8",
        *config.states_budget_mb));
}

Distiller::Distiller(const Model& model, DistillerOptions options)
    : model_(loaded(model)),
      options_(checked_distilling(std::move(options))),
      rows_(std::min(model_.context, model_.llama->config().context)),
      target_(model_.open_target(static_cast<int32_t>(options_.config.batch), rows_)) {}

PromptSet Distiller::self_prompts() {
  const std::filesystem::path& file = options_.questions;
  expect_named(file, "DistillerOptions::questions");
  const std::string own = question_text();
  if (std::filesystem::exists(file)) {
    PromptSet there = read_prompts(file);
    const std::string made = questions_made_with(read_file(file));
    if (made.empty() && options_.fresh && options_.note)
      options_.note(fmt::format(
          "{} questions of {} are asked, which are somebody's own; remove the file and {} are "
          "written",
          there.prompts.size(), file.string(), options_.config.self_prompts));
    if (made.empty() || made == own) return there;
    if (!options_.fresh)
      throw UserError(fmt::format(
          "{}: the questions were written with {}, this run has {}, expected the same; set them "
          "back, or say --fresh to write them anew",
          file.string(), made, own));
  }
  expect_chat_template(model_, "Distiller");
  const auto turn = model_.turns->take("Distiller");
  const std::vector<std::string> all =
      write_questions(options_.config, options_.seed, model_, target_);
  if (interrupted()) return {};
  const std::vector<std::string> kept = keep_good(all, options_.note);
  if (kept.empty())
    throw UserError(
        fmt::format("distill: the model finished none of {} questions, expected most of them; is "
                    "it a chat model with this template ({})? "
                    "Give prompts instead: distill.prompts",
                    options_.config.self_prompts, model_.chat.name()));
  if (file.has_parent_path()) make_folder(file.parent_path());
  write_file(file, question_lines(kept, own));
  return read_prompts(file);
}

/// What decides the questions that the model writes.
std::string Distiller::question_text() const {
  const DistillConfig& config = options_.config;
  return fmt::format("self_prompts {}, question_tokens {}, {}, seed {}, template {}, model {}",
                     config.self_prompts, config.question_tokens,
                     in_one_line(write_config(config.question_sampling)), options_.seed,
                     model_.chat.name(), short_fingerprint(model_.llama->weights().fingerprint));
}

/// What decides the samples beside the settings, as lines of theirs.
std::string Distiller::computed_text() const {
  return fmt::format("{}{}\nbackbone.context: {}\n", kFirstComputed, model_.llama->dtype_name(),
                     rows_);
}

/// @param prompts  fingerprint of what the samples come from;  @param sampling  the settings that
///                 decide what they hold.
DatasetWriter Distiller::open_writer(const std::string& prompts, const std::string& sampling,
                                     int64_t count) const {
  const DistillConfig& config = options_.config;
  const ModelConfig& shape = model_.llama->config();
  DatasetInfo info;
  info.backbone = model_.llama->weights().fingerprint;
  info.tokenizer = model_.tokenizer->fingerprint();
  info.prompts = prompts;
  if (options_.fresh) {
    if (options_.before_removal) options_.before_removal();
    remove_shards(options_.dataset);
  }
  const std::string own = computed_text(), before = computed_before(options_.dataset, own);
  info.sampling = sampling + before;
  info.seed = options_.seed;
  info.vocab_size = shape.vocab_size;
  if (config.record_hidden) {
    info.hidden_size = shape.hidden_size;
    info.states = config.states_dtype;
    info.states_budget =
        static_cast<int64_t>(std::ceil(kBytesOfMegabyte * config.states_budget_mb.value_or(0)));
  }
  DatasetWriter writer =
      options_.part
          ? DatasetWriter(options_.dataset, info, count, config.shard_samples, *options_.part)
          : DatasetWriter(options_.dataset, info, count, config.shard_samples,
                          config.max_answer_tokens);
  if (before != own && !before.empty() && !writer.complete())
    throw UserError(fmt::format(
        "{}: made with {}, this run has {}, expected the same until it is complete; set them back "
        "to continue, or start anew with --fresh",
        options_.dataset.string(), in_one_line(before), in_one_line(own)));
  return writer;
}

DistillReport Distiller::run(std::span<const Prompt> prompts) {
  const auto turn = model_.turns->take("Distiller");
  if (prompts.empty())
    throw UserError(
        "distill: was given no prompts, expected one or more; give some, or let the model ask "
        "itself");
  std::vector<DistillPrompt> encoded;
  for (const Prompt& prompt : prompts)
    encoded.push_back({prompt.id, model_.encode(prompt.messages)});
  if (options_.fresh && std::ranges::none_of(encoded, [&](const DistillPrompt& prompt) {
        return std::ssize(prompt.tokens) < rows_;
      }))
    throw UserError(fmt::format(
        "distill --fresh: none of {} prompts fits into a context of {} tokens, expected some; give "
        "shorter ones, or raise backbone.context if the model was trained for more",
        encoded.size(), rows_));
  const DistillConfig& config = options_.config;
  DatasetWriter writer =
      open_writer(fingerprint_prompts(encoded), sampling_text(config), std::ssize(encoded));
  const GenerateFunction generate =
      make_generate_function(target_, config.sampling, model_.eos,
                             config.record_hidden ? model_.llama->config().hidden_size : 0);
  return self_distill(encoded, generate,
                      {.max_new_tokens = config.max_new_tokens, .max_sequence = rows_},
                      Random(options_.seed), writer, model_.progress);
}

DistillReport Distiller::read(std::span<const WrittenText> texts) {
  const auto turn = model_.turns->take("Distiller");
  if (options_.part)
    throw UserError(fmt::format(
        "distill --prefill: found --shard {}/{}, expected the whole; give each process texts and a "
        "run of its own, and name all their datasets in train.data",
        options_.part->index, options_.part->count));
  const DistillConfig& config = options_.config;
  int64_t refused = 0;
  const std::vector<Sample> samples = all_samples(
      model_, texts, {.document = std::min(config.text_tokens, rows_), .conversation = rows_},
      refused);
  // self_distill() lets prompts be continued: here by what stands behind them.
  std::vector<DistillPrompt> prompts, whole;
  for (const Sample& sample : samples) {
    const auto end = sample.tokens.begin() + sample.answer_start;
    prompts.push_back({sample.prompt_id, {sample.tokens.begin(), end}});
    whole.push_back({sample.prompt_id, sample.tokens});
  }
  DatasetWriter writer =
      open_writer(fingerprint_prompts(whole), fmt::format("read: {}\n", config.text_tokens),
                  std::ssize(samples));
  DistillReport report =
      self_distill(prompts, make_reading_function(target_, samples, config.record_hidden),
                   {.max_new_tokens = static_cast<int32_t>(rows_),
                    .max_sequence = rows_,
                    .prompts = "pieces",
                    .answers = "pieces"},
                   Random(options_.seed), writer, model_.progress);
  report.too_long += refused;
  return report;
}

}  // namespace medusa
