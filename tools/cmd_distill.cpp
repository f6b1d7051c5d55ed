// medusa distill: the model answers prompts; the answers become the training text of the heads.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/prompts.h"
#include "data/self_distill.h"
#include "infer/backbone_target.h"
#include "tools/command.h"
#include "tools/generation.h"
#include "tools/self_prompt.h"
#include "tools/session.h"

namespace medusa {
namespace {

void add_prompts(const PromptSet& set, const Session& session, std::vector<DistillPrompt>& out) {
  for (const Prompt& prompt : set) out.push_back({prompt.id, session.encode(prompt.messages)});
}

std::vector<DistillPrompt> collect_prompts(const RunConfig& config, const Session& session,
                                           TargetModel& target) {
  std::vector<DistillPrompt> out;
  if (config.distill.prompts.empty())
    add_prompts(self_prompts(config, session, target), session, out);
  for (const std::string& file : config.distill.prompts) {
    const PromptSet set = read_prompts(file);
    if (set.skipped > 0)
      fmt::print(stderr, "{}: {} conversations without a user's message are skipped\n", file,
                 set.skipped);
    add_prompts(set, session, out);
  }
  return out;
}

/// The settings that decide what the samples hold.
std::string sampling_text(const RunConfig& config) {
  DistillSection settings = config.distill;
  settings.prompts.clear();  // prompts are told apart by their own fingerprint
  settings.batch = 0;        // does not change the text
  return write_config(settings);
}

void report(const DistillReport& result, const std::filesystem::path& folder, bool json) {
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"dataset", folder.string()},
                                      {"samples", result.answered},
                                      {"answer_tokens", result.answer_tokens},
                                      {"generated", result.generated},
                                      {"too_long", result.too_long},
                                      {"complete", result.complete},
                                      {"seconds", result.seconds}}
                           .dump());
    return;
  }
  if (result.too_long > 0)
    fmt::print(stderr, "{} prompts do not fit into the context and are skipped\n", result.too_long);
  fmt::print(stderr, "{} answers, {} tokens; {} generated now, {:.0f} tokens/s\n", result.answered,
             result.answer_tokens, result.generated,
             result.seconds > 0 ? static_cast<double>(result.generated) / result.seconds : 0.0);
  if (result.complete)
    fmt::print(stderr, "dataset: {}\n", folder.string());
  else
    fmt::print(stderr, "interrupted; run the same command again to continue\n");
}

void run(const CommonOptions& options) {
  const RunConfig config = read_run_config(options);
  const DistillSection& settings = config.distill;
  const Session session = open_session(config.backbone);
  const ModelConfig& model = session.llama->config();
  const int64_t rows = std::min<int64_t>(session.context, model.context);
  BackboneTarget target(*session.llama, static_cast<int32_t>(settings.batch), rows);
  const std::vector<DistillPrompt> prompts = collect_prompts(config, session, target);
  if (interrupted()) return;

  DatasetInfo info;
  info.backbone = session.llama->weights().fingerprint;
  info.tokenizer = session.tokenizer->fingerprint();
  info.prompts = fingerprint_prompts(prompts);
  info.sampling = sampling_text(config);
  info.seed = config.seed;
  info.vocab_size = model.vocab_size;
  info.hidden_size = settings.record_hidden ? model.hidden_size : 0;
  DatasetWriter writer(config.dataset_folder(), info, static_cast<int64_t>(prompts.size()),
                       settings.shard_samples);
  const GenerateFunction generate =
      make_generate_function(target, settings.sampling, session.eos, info.hidden_size);
  const DistillLimits limits{.max_new_tokens = settings.max_new_tokens, .max_sequence = rows};
  report(self_distill(prompts, generate, limits, Random(config.seed), writer),
         config.dataset_folder(), options.json);
}

}  // namespace

Command distill_command() {
  return {"distill",
          "let the model write the training text",
          {"backbone", "distill"},
          [](CLI::App&, const CommonOptions& options) { return [&options] { run(options); }; }};
}

}  // namespace medusa
