// medusa distill: the model answers prompts; the answers become the training text of the heads.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/stderr_progress.h"
#include "base/yaml_fields.h"
#include "data/prompts.h"
#include "data/self_distill.h"
#include "infer/backbone_target.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/generation.h"
#include "tools/inspect/artifact_kind.h"
#include "tools/measure/free_room.h"
#include "tools/measure/peak_memory.h"
#include "tools/open_model.h"
#include "tools/run_lock.h"
#include "tools/self_prompt.h"

namespace medusa {
namespace {

void add_prompts(const PromptSet& set, const Model& model, std::vector<DistillPrompt>& out) {
  for (const Prompt& prompt : set) out.push_back({prompt.id, model.encode(prompt.messages)});
}

PromptSet read_given(const std::string& file) {
  PromptSet set = read_prompts(file);
  if (set.skipped > 0)
    print_note("{}: {} conversations without a user's message are skipped\n", file, set.skipped);
  return set;
}

/// @param given  empty: the model asks itself.
std::vector<DistillPrompt> collect_prompts(const RunConfig& config,
                                           const std::vector<PromptSet>& given, const Model& model,
                                           TargetModel& target) {
  std::vector<DistillPrompt> out;
  if (given.empty()) add_prompts(self_prompts(config, model, target), model, out);
  for (const PromptSet& set : given) add_prompts(set, model, out);
  return out;
}

constexpr double kBytesOfMegabyte = 1e6;

/// The settings that decide what the samples hold.
std::string sampling_text(const RunConfig& config) {
  DistillSection settings = config.distill;
  settings.prompts.clear();  // prompts are told apart by their own fingerprint
  settings.batch = 0;        // does not change the text
  // How states are kept is told apart by itself, and datasets from before there was a choice, or
  // min-p, go on.
  std::istringstream all(write_config(settings));
  std::string text;
  for (std::string line; std::getline(all, line);)
    if (!line.starts_with("states_") && !line.ends_with("min_p: 0")) text += line + "\n";
  return text;
}

void report(const DistillReport& result, const PeakMemory& peak,
            const std::filesystem::path& folder, bool as_json) {
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
    print_note("{} prompts do not fit into the context and are skipped\n", result.too_long);
  print_note("{} answers, {} tokens; {} generated now, {:.0f} tokens/s{}\n", result.answered,
             result.answer_tokens, result.generated,
             result.seconds > 0 ? static_cast<double>(result.generated) / result.seconds : 0.0,
             memory_text(peak));
  if (result.complete)
    print_note("dataset: {}\n", folder.string());
  else
    print_note("interrupted; run the same command again to continue\n");
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

DatasetWriter open_dataset_writer(const RunConfig& config, const std::filesystem::path& folder,
                                  const DatasetInfo& info, int64_t num_prompts,
                                  const std::optional<DatasetPart>& part) {
  const int64_t shard_size = config.distill.shard_samples;
  return part ? DatasetWriter(folder, info, num_prompts, shard_size, *part)
              : DatasetWriter(folder, info, num_prompts, shard_size,
                              config.distill.max_answer_tokens);
}

struct DistillOptions {
  std::vector<std::string> questions;  // files; empty: as the settings say
  std::optional<DatasetPart> part;
  bool fresh = false;
};

/// All but the lock that a part's folder has.
void remove_dataset(const std::filesystem::path& folder) {
  if (find_kind(folder) != ArtifactKind::Dataset) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != FolderLock::kName) std::filesystem::remove_all(entry.path());
}

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
int64_t most_prompts(const DistillSection& settings, const std::vector<PromptSet>& given) {
  if (given.empty()) return settings.self_prompts;
  int64_t count = 0;
  for (const PromptSet& set : given) count += std::ssize(set.prompts);
  return count;
}

void run_distill(const CommonOptions& options, const DistillOptions& own) {
  RunConfig config = read_run_config(options);
  const std::optional<DatasetPart>& part = own.part;
  if (!own.questions.empty()) config.distill.prompts = own.questions;
  const DistillSection& settings = config.distill;
  if (part && settings.max_answer_tokens > 0)
    throw UserError(fmt::format(
        "distill.max_answer_tokens is {} with --shard, found a limit that no part can count alone, "
        "expected 0; bound the prompts instead (distill.self_prompts, or the prompt files)",
        settings.max_answer_tokens));
  if (part && settings.states_budget_mb)
    throw UserError(fmt::format(
        "distill.states_budget_mb is {} with --shard, found a limit that no part can count alone, "
        "expected null; set record_hidden to false in all parts, or states_dtype to int8",
        *settings.states_budget_mb));
  const std::filesystem::path folder =
      part ? config.dataset_part_folder(part->index, part->count) : config.dataset_folder();
  std::vector<PromptSet> given;  // before the model is loaded
  for (const std::string& file : settings.prompts) given.push_back(read_given(file));
  const Model model = open_model(config.backbone);
  const bool is_new = own.fresh || !std::filesystem::exists(folder);  // a part's lock makes it
  const FolderLock lock =
      part ? FolderLock(folder, "medusa distill") : lock_run(config, "medusa distill");
  if (own.fresh) remove_dataset(folder);
  const at::Device device = model.llama->device();
  reset_peak_memory(device);
  const ModelConfig& shape = model.llama->config();
  const int64_t rows = std::min<int64_t>(model.context, shape.context);
  BackboneTarget target = model.open_target(static_cast<int32_t>(settings.batch), rows);
  if (is_new) {  // what continues has said it
    const int64_t all = most_prompts(settings, given), parts = part ? part->count : 1;
    say_room(settings, (all + parts - 1) / parts, folder, shape.hidden_size);
  }
  const std::vector<DistillPrompt> prompts = collect_prompts(config, given, model, target);
  if (interrupted()) return;

  DatasetInfo info;
  info.backbone = model.llama->weights().fingerprint;
  info.tokenizer = model.tokenizer->fingerprint();
  info.prompts = fingerprint_prompts(prompts);
  info.sampling = sampling_text(config);
  info.seed = config.seed;
  info.vocab_size = shape.vocab_size;
  if (settings.record_hidden) {
    info.hidden_size = shape.hidden_size;
    info.states = settings.states_dtype;
    info.states_budget =
        static_cast<int64_t>(std::ceil(kBytesOfMegabyte * settings.states_budget_mb.value_or(0)));
  }
  DatasetWriter writer =
      open_dataset_writer(config, folder, info, static_cast<int64_t>(prompts.size()), part);
  const GenerateFunction generate =
      make_generate_function(target, settings.sampling, model.eos, info.hidden_size);
  const DistillLimits limits{.max_new_tokens = settings.max_new_tokens, .max_sequence = rows};
  const DistillReport result =
      self_distill(prompts, generate, limits, Random(config.seed), writer, stderr_progress());
  report(result, peak_memory(device), folder, options.json);
  if (!result.complete) return;
  if (part)
    print_next(options, "dataset merge");
  else
    print_next(options, "train");
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
                       "cat prompts.txt | medusa distill model.gguf --questions -"},
          .attach = [](Options& added, const CommonOptions& options) -> std::function<void()> {
            const auto own = std::make_shared<DistillOptions>();
            added.group("Prompts");
            added.repeatable(
                "--questions", "FILE",
                "prompts to answer instead of its own questions; -: standard input (repeatable)",
                [own](const std::string& file) { own->questions.push_back(file); });
            added.text(
                "--shard", "I/N",
                "only the i-th of n parts, from 0, into <run>/dataset-i-of-n; medusa dataset "
                "merge joins them",
                [own](const std::string& text) { own->part = parse_part(text); });
            added.flag("--fresh", own->fresh,
                       "start anew: remove the run's dataset; its questions stay");
            return [own, &options] { run_distill(options, *own); };
          }};
}

}  // namespace medusa
