// What distillation and training make: datasets, heads, checkpoints, metrics.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/formats/safetensors_file.h"
#include "data/dataset/dataset_reader.h"
#include "data/prompts.h"
#include "heads/heads_checkpoint.h"
#include "tools/inspect/inspectors.h"
#include "tools/report/training_curve.h"
#include "train/record/checkpoint.h"
#include "train/record/event_file.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

void add_info(Json& out, const DatasetInfo& info) {
  out["vocab_size"] = info.vocab_size;
  out["hidden_size"] = info.hidden_size;
  out["hidden_states"] = info.hidden_size > 0 ? enum_name(info.states) : "not recorded";
  if (info.states_budget > 0) out["states_budget_bytes"] = info.states_budget;
  out["seed"] = info.seed;
  out["made_from"] = {
      {"backbone", info.backbone}, {"tokenizer", info.tokenizer}, {"prompts", info.prompts}};
  out["settings"] = info.sampling;
}

/// Totals of the numbers that heads or a checkpoint store; the list of kept tokens is no parameter.
TensorTotals totals_of(const fs::path& file) {
  const SafetensorsFile tensors(file);
  TensorTotals totals;
  for (const SafetensorsEntry& entry : tensors.entries()) {
    if (entry.dtype == "I32") continue;
    int64_t elements = 1;
    for (const int64_t size : entry.shape) elements *= size;
    totals.add(entry.dtype, elements, static_cast<int64_t>(entry.bytes.size()));
  }
  return totals;
}

}  // namespace

Json inspect_prompts(const fs::path& file) {
  const PromptSet set = read_prompts(file);
  int64_t later = 0;
  for (const Prompt& prompt : set) later += std::ssize(prompt.later_turns);
  return {{"summary", fmt::format("{} prompts", set.prompts.size())},
          {"prompts", set.prompts.size()},
          {"later_turns", later},
          {"skipped", set.skipped}};
}

Json inspect_dataset(const fs::path& folder) {
  const DatasetReader dataset(folder);
  int64_t prompt_tokens = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) prompt_tokens += dataset.answer_start(i);
  Json out;
  out["summary"] =
      fmt::format("{} answers, {} answer tokens{}", dataset.size(), dataset.num_answer_tokens(),
                  dataset.complete() ? "" : ", not finished");
  out["complete"] = dataset.complete();
  out["num_shards"] = dataset.num_shards();
  out["num_prompts"] = dataset.num_prompts();
  out["num_answers"] = dataset.size();
  out["prompt_tokens"] = prompt_tokens;
  out["answer_tokens"] = dataset.num_answer_tokens();
  if (dataset.size() > 0)
    out["mean_answer_tokens"] =
        static_cast<double>(dataset.num_answer_tokens()) / static_cast<double>(dataset.size());
  out["fingerprint"] = dataset.fingerprint();
  add_info(out, dataset.info());
  if (dataset.num_hidden() > 0) {
    out["answers_with_states"] = dataset.num_hidden();
    out["answer_tokens_with_states"] = dataset.num_hidden_tokens();
  }
  return out;
}

Json inspect_shard(const fs::path& file) {
  const ShardFile shard(file);
  const ShardHeader& header = shard.header();
  Json out;
  out["summary"] = fmt::format("{} answers, {} answer tokens", shard.samples().size(),
                               shard.samples().num_answer_tokens());
  out["size_bytes"] = shard.bytes().size();
  out["first_prompt"] = header.first;
  out["num_prompts"] = header.count;
  out["prompts_of_the_run"] = header.total;
  out["last_shard"] = header.last;
  out["num_answers"] = shard.samples().size();
  out["answer_tokens"] = shard.samples().num_answer_tokens();
  add_info(out, header.info);
  if (header.info.hidden_size > 0) out["answer_tokens_with_states"] = shard.hidden_rows();
  return out;
}

Json inspect_heads(const fs::path& folder) {
  const HeadsManifest manifest = read_heads_manifest(folder);
  const TensorTotals totals = totals_of(folder / "heads.safetensors");
  const HeadsConfig& config = manifest.config;
  Json out;
  out["summary"] = fmt::format(
      "{} heads, {:.1f} million parameters, {}", config.num_heads,
      static_cast<double>(totals.num_parameters()) / 1e6,
      manifest.source.empty() ? fmt::format("{} optimizer steps", manifest.step) : "imported");
  out["fingerprint"] = manifest.fingerprint;
  out["num_heads"] = config.num_heads;
  out["layers_per_head"] = config.layers_per_head;
  out["input"] = enum_name(config.input);
  if (has_prefix(config.input)) out["start"] = enum_name(config.start);
  out["output"] = enum_name(config.output);
  if (is_truncated(config.output)) out["output_size"] = config.output_size;
  if (is_low_rank(config.output)) out["output_rank"] = config.output_rank;
  if (config.correction_rank > 0) out["correction_rank"] = config.correction_rank;
  out["hidden_size"] = manifest.hidden_size;
  out["vocab_size"] = manifest.vocab_size;
  out["optimizer_steps"] = manifest.step;
  totals.describe(out);
  out["made_from"] = {{"backbone", manifest.backbone}};
  out["made_from"][manifest.source.empty() ? "dataset" : "source"] =
      manifest.source.empty() ? manifest.dataset : manifest.source;
  if (!manifest.mixed_datasets.empty())
    out["made_from"]["mixed_datasets"] = manifest.mixed_datasets;
  for (const LearnedText& text : manifest.learned_before)
    out["made_from"]["learned_before"].push_back(text.dataset);
  if (!manifest.quality.empty()) {
    out["validation_positions"] = manifest.num_validation;
    Json quality = Json::array();
    for (size_t k = 0; k < manifest.quality.size(); ++k) {
      const HeadQuality& head = manifest.quality[k];
      quality.push_back({{"head", k},
                         {"top_1", head.top_1},
                         {"top_5", head.top_5},
                         {"top_10", head.top_10},
                         {"loss_nats", head.loss}});
    }
    out["validation"] = std::move(quality);
  }
  out["settings"] = manifest.settings;
  return out;
}

Json inspect_checkpoint(const fs::path& folder) {
  const CheckpointSummary checkpoint = read_checkpoint(folder);
  Json made_with = Json::object();
  for (const std::string& text : checkpoint.run) {
    const size_t equals = text.find('=');
    made_with[text.substr(0, equals)] = equals == std::string::npos ? "" : text.substr(equals + 1);
  }
  Json out;
  out["summary"] = fmt::format("after {} optimizer steps", checkpoint.step);
  out["optimizer_steps"] = checkpoint.step;
  totals_of(folder / "state.safetensors").describe(out);
  out["made_with"] = std::move(made_with);
  return out;
}

Json inspect_metrics(const fs::path& file) {
  const TrainingCurve curve = read_training_curve(file);
  const auto rows = [](const std::vector<CurvePoint>& points, size_t first) {
    Json table = Json::array();
    for (size_t i = first; i < points.size(); ++i)
      table.push_back({{"optimiser_step", points[i].step},
                       {"loss_nats", points[i].loss},
                       {"top_1", points[i].head_top_1}});
    return table;
  };
  Json out;
  out["summary"] = curve.train.empty()
                       ? "no training reports"
                       : fmt::format("{} optimizer steps, loss {:.3f} nats",
                                     curve.train.back().step, curve.train.back().loss);
  out["training_reports"] = curve.train.size();
  out["validation_reports"] = curve.validation.size();
  if (!curve.train.empty()) out["last_training_report"] = rows(curve.train, curve.train.size() - 1);
  out["validations"] = rows(curve.validation, 0);
  for (const GuardPoint& point : curve.guard)
    out["guard"].push_back({{"optimiser_step", point.step},
                            {"kl_nats", point.kl},
                            {"perplexity", point.perplexity},
                            {"greedy_match", point.greedy_match}});
  return out;
}

Json inspect_events(const fs::path& file) {
  const std::vector<Event> events = read_event_file(file);
  std::map<std::string, std::pair<int64_t, double>> last;  // of each curve: how many, the last one
  for (const Event& event : events)
    for (const auto& [tag, value] : event.scalars) last[tag] = {last[tag].first + 1, value};
  Json out;
  out["summary"] =
      fmt::format("{} curves up to step {}", last.size(), events.empty() ? 0 : events.back().step);
  out["records"] = events.size();
  Json curves = Json::array();
  for (const auto& [tag, found] : last)
    curves.push_back({{"tag", tag}, {"points", found.first}, {"last", found.second}});
  out["curves"] = std::move(curves);
  return out;
}

}  // namespace medusa
