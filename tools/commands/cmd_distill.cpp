// medusa distill: the model answers prompts; the answers become the training text of the heads.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/shown_text.h"
#include "data/prompts.h"
#include "data/written_texts.h"
#include "runtime/distiller.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/commands/questions.h"
#include "tools/measure/resources.h"
#include "tools/run/open_model.h"
#include "tools/run/output_check.h"
#include "train/record/heads_place.h"

namespace medusa {
namespace {

constexpr double kBytesOfMegabyte = 1e6;

/// @param was_read  of texts that were there, not of the model's own.
void report(const DistillReport& result, const PeakMemory& peak, const DistillerOptions& asked,
            bool was_read, bool as_json) {
  const std::filesystem::path& folder = asked.dataset;
  if (as_json) {
    nlohmann::json out{{"dataset", folder.string()},
                       {"samples", result.answered},
                       {"answer_tokens", result.answer_tokens},
                       {"generated", result.generated},
                       {"too_long", result.too_long},
                       {"complete", result.complete},
                       {"seconds", result.seconds}};
    add_memory(out, peak);
    print_json(out);
    return;
  }
  if (result.too_long > 0)
    print_note("{} {} and are skipped\n", result.too_long,
               was_read ? "answers are empty, too long or not as the chat template writes them"
                        : "prompts do not fit into the context");
  print_note("{} {}, {} tokens; {} {} now, {:.0f} tokens/s{}\n", result.answered,
             was_read ? "pieces" : "answers", result.answer_tokens, result.generated,
             was_read ? "read" : "generated",
             result.seconds > 0 ? static_cast<double>(result.generated) / result.seconds : 0.0,
             memory_text(peak));
  if (result.complete)
    print_note("dataset: {}\n", folder.string());
  else
    print_interrupted(asked.fresh);
}

/// "2/8": the third of eight parts.
DatasetPart parse_part(const std::string& text) {
  DatasetPart part;
  const size_t slash = text.find('/');
  const auto number = [](std::string_view digits, int64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const bool read = slash != std::string::npos &&
                    number(std::string_view(text).substr(0, slash), part.index) &&
                    number(std::string_view(text).substr(slash + 1), part.count);
  if (!read || part.index < 0 || part.index >= part.count)
    throw UserError(
        fmt::format("--shard is '{}', expected index/count with an index from 0 to count - 1; "
                    "write 0/{} for the "
                    "first of {} parts",
                    text, read ? std::max<int64_t>(part.count, 1) : 4,
                    read ? std::max<int64_t>(part.count, 1) : 4));
  return part;
}

struct DistillOptions {
  std::vector<std::string> questions;  // files; empty: as the settings say
  std::vector<std::string> texts;      // files to read; empty: the model writes
  std::optional<DatasetPart> part;
  bool fresh = false;
};

/// How much text and how many bytes of states will come at most, before hours are spent on it.
void say_room(const DistillSection& settings, int64_t num_prompts,
              const std::filesystem::path& folder, int64_t hidden_size) {
  int64_t tokens = num_prompts * settings.max_new_tokens;
  if (settings.max_answer_tokens > 0) tokens = std::min(tokens, settings.max_answer_tokens);
  int64_t bytes =
      settings.record_hidden ? tokens * state_row_bytes(settings.states_dtype, hidden_size) : 0;
  if (settings.states_budget_mb)
    bytes = std::min(bytes, static_cast<int64_t>(kBytesOfMegabyte * *settings.states_budget_mb));
  const auto disk = free_disk(folder);
  print_note("distill: at most {} prompts, {} tokens of answers and {} of states{}\n", num_prompts,
             tokens, bytes_text(bytes),
             disk ? fmt::format("; {} are free", bytes_text(*disk)) : std::string());
  if (disk && bytes > *disk)
    print_note(
        "look at this: the disk may get full; distill.states_dtype=int8 halves the states, "
        "distill.states_budget_mb bounds them\n");
}

/// Of all parts if there are several.
/// @param kept  the file of self-written questions, which is read if it is there; empty: they are
///              written anew.
int64_t most_prompts(const DistillSection& settings, const std::vector<PromptSet>& given,
                     const std::filesystem::path& kept) {
  if (given.empty() && !kept.empty() && std::filesystem::exists(kept))
    return std::ssize(read_prompts(kept).prompts);
  if (given.empty()) return settings.self_prompts;
  int64_t count = 0;
  for (const PromptSet& set : given) count += std::ssize(set.prompts);
  return count;
}

DistillerOptions distiller_options(const RunConfig& config,
                                   const std::optional<DatasetPart>& part) {
  DistillerOptions out;
  out.config = config.distill;
  out.dataset =
      part ? config.dataset_part_folder(part->index, part->count) : config.dataset_folder();
  out.questions = config.questions_file();
  out.part = part;
  out.seed = config.seed;
  out.note = [](std::string_view text) { print_note("{}\n", text); };
  return out;
}

/// @param given  empty: the model asks itself.
std::vector<Prompt> all_prompts(const std::vector<PromptSet>& given, Distiller& distiller) {
  if (given.empty()) return distiller.self_prompts().prompts;
  std::vector<Prompt> out;
  for (const PromptSet& set : given) out.insert(out.end(), set.begin(), set.end());
  return out;
}

std::vector<WrittenText> all_texts(const std::vector<std::string>& files) {
  std::vector<WrittenText> texts;
  int64_t skipped = 0;
  for (const std::string& file : files) {
    WrittenTextSet set = read_written_texts(file);
    std::move(set.texts.begin(), set.texts.end(), std::back_inserter(texts));
    skipped += set.skipped;
  }
  if (skipped > 0)
    print_note("{} conversations without a known speaker or an answer are skipped\n", skipped);
  return texts;
}

/// What says how answers are written does nothing where none are.
void refuse_writing_options(const CommonOptions& options) {
  for (const GivenSetting& given : options.settings)
    if (given.key.starts_with("distill."))
      throw UserError(
          fmt::format("distill --prefill: found {} {}, expected no option of answers, as none are "
                      "written; leave it out",
                      given.option, given.texts[0]));
}

/// The datasets that training reads next: the texts, and what the model wrote where it is there.
std::string datasets_to_train_on(const RunConfig& config, const std::filesystem::path& texts) {
  const std::filesystem::path written = config.dataset_folder();
  std::string list = yaml_text(texts.string());
  if (std::filesystem::exists(written)) list = yaml_text(written.string()) + ", " + list;
  return "train.data=[" + list + "]";
}

/// distill --prefill: the texts become a dataset beside the one that the model writes.
void read_texts(const CommonOptions& options, const DistillOptions& own) {
  if (!own.questions.empty())
    throw UserError(
        "distill --prefill: found --questions, expected texts alone; run medusa distill once for "
        "each");
  refuse_writing_options(options);
  const RunConfig config = read_run_config(options);
  DistillerOptions asked = distiller_options(config, own.part);
  asked.dataset = config.text_dataset_folder();
  asked.fresh = own.fresh;
  asked.config.batch = 1;  // texts are read one after the other
  asked.validate();
  const std::vector<WrittenText> texts = all_texts(own.texts);  // before the model is loaded
  const Model model = open_model(config.backbone, /*needs_chat_template=*/std::ranges::any_of(
                                     texts, &WrittenText::is_conversation));
  const FolderLock lock = lock_run(config, "medusa distill");
  const at::Device device = model.llama->device();
  reset_peak_memory(device);
  const DistillReport result = Distiller(model, asked).read(texts);
  report(result, peak_memory(device), asked, /*was_read=*/true, options.json);
  if (result.complete)
    print_next(options, "train", {"--set", datasets_to_train_on(config, asked.dataset)});
}

void run_distill(const CommonOptions& options, const DistillOptions& own) {
  if (!own.texts.empty()) return read_texts(options, own);
  RunConfig config = read_run_config(options);
  const std::optional<DatasetPart>& part = own.part;
  if (!own.questions.empty()) config.distill.prompts = own.questions;
  DistillerOptions asked = distiller_options(config, part);
  asked.fresh = own.fresh;
  asked.before_removal = options.before_removal;
  asked.validate();
  std::vector<PromptSet> given;  // before the model is loaded
  for (const std::string& file : config.distill.prompts) {
    given.push_back(read_questions(file));
    note_later_turns(given.back().prompts);
  }
  const Model model = open_model(config.backbone);
  const bool is_new =
      own.fresh || !std::filesystem::exists(asked.dataset);  // a part's lock makes it
  const FolderLock lock =
      part ? FolderLock(asked.dataset, "medusa distill") : lock_run(config, "medusa distill");
  const at::Device device = model.llama->device();
  reset_peak_memory(device);
  Distiller distiller(model, asked);
  if (is_new) {  // what continues has said it
    const int64_t all = most_prompts(config.distill, given,
                                     own.fresh ? std::filesystem::path() : asked.questions),
                  parts = part ? part->count : 1;
    say_room(config.distill, (all + parts - 1) / parts, asked.dataset,
             model.llama->config().hidden_size);
  }
  const std::vector<Prompt> prompts = all_prompts(given, distiller);
  if (interrupted()) return;
  const DistillReport result = distiller.run(prompts);
  report(result, peak_memory(device), asked, /*was_read=*/false, options.json);
  if (!result.complete) return;
  if (part)
    print_next(options, "dataset merge");
  else  // imported heads are not trained, and need a tree
    print_next(options, holds_imported_heads(config.heads_folder()) ? "calibrate" : "train");
}

}  // namespace

Command distill_command() {
  return {.name = "distill",
          .summary = "let the model write the training text",
          .details =
              "It answers questions that it asks itself, or yours. Killed and started again "
              "it continues.",
          .sections = {"backbone", "distill"},
          .settings = {"--temperature", "--top-p", "--top-k", "--max-tokens", "--seed", "--batch",
                       "--device", "--dtype", "--threads", "--context", "--cache-mb"},
          .text_section = "distill",
          .examples = {"distill model.gguf", "distill model.gguf --questions my_prompts.jsonl",
                       "cat prompts.txt | medusa distill model.gguf --questions -",
                       "distill model.gguf --prefill book.txt --prefill chats.jsonl"},
          .attach = [](Options& added, const CommonOptions& options) -> std::function<void()> {
            const auto own = std::make_shared<DistillOptions>();
            added.group("Prompts");
            added.repeatable(
                "--questions", "FILE",
                "prompts to answer instead of its own questions; -: standard input (repeatable)",
                [own](const std::string& file) { own->questions.push_back(file); });
            added.repeatable(
                "--prefill", "FILE",
                "texts to read instead: documents, or .jsonl or .json with text, messages or "
                "conversations; nothing is generated, <run>/dataset-text keeps the states "
                "(repeatable; -: standard input)",
                [own](const std::string& file) { own->texts.push_back(file); });
            added.text(
                "--shard", "I/N",
                "only the i-th of n parts, from 0, into <run>/dataset-i-of-n; medusa dataset "
                "merge joins them",
                [own](const std::string& text) { own->part = parse_part(text); });
            added.flag("--fresh", own->fresh,
                       "start anew: remove the run's dataset; questions of your own stay");
            return [own, &options] { run_distill(options, *own); };
          }};
}

}  // namespace medusa
