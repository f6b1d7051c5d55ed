#include "tools/training/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "base/stderr_progress.h"
#include "data/tokenizer/tokenizer.h"
#include "runtime/check_dataset.h"
#include "tools/measure/resources.h"
#include "tools/training/stages.h"
#include "train/resource_estimate.h"

namespace medusa {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownTokens = 48;  // of a sample's prompt and of its answer

Json needs_json(const std::vector<ByteNeed>& needs) {
  Json out = Json::array();
  for (const ByteNeed& need : needs) out.push_back({{"what", need.what}, {"bytes", need.bytes}});
  return out;
}

/// Warnings of the numbers, and of a machine that cannot hold them.
std::vector<std::string> warnings_of(const ResourceEstimate& flight, const RunConfig& config) {
  std::vector<std::string> out = flight.warnings();
  const int64_t memory = available_memory();
  const auto disk = free_disk(config.run);
  if (memory > 0 && total_bytes(flight.memory) > memory)
    out.push_back(fmt::format("{} of memory are needed, {} are free",
                              bytes_text(total_bytes(flight.memory)), bytes_text(memory)));
  if (disk && total_bytes(flight.disk) > *disk)
    out.push_back(fmt::format("{} of disk are needed, {} are free",
                              bytes_text(total_bytes(flight.disk)), bytes_text(*disk)));
  return out;
}

Json flight_json(const ResourceEstimate& flight, const RunConfig& config) {
  Json heads = Json::array();
  for (const HeadLoss& head : flight.first.heads) heads.push_back(head.quality().loss);
  return {{"parameters", flight.num_parameters},
          {"steps", flight.num_steps},
          {"positions", flight.num_positions},
          {"memory_bytes", total_bytes(flight.memory)},
          {"memory", needs_json(flight.memory)},
          {"disk_bytes", total_bytes(flight.disk)},
          {"disk", needs_json(flight.disk)},
          {"seconds", flight.seconds()},
          {"lm_head_loss_nats", flight.first.lm_head_loss},
          {"uniform_loss_nats", flight.first.uniform_loss},
          {"head_loss_nats", std::move(heads)},
          {"warnings", warnings_of(flight, config)}};
}

void print_needs(const char* title, const std::vector<ByteNeed>& needs) {
  print_text("  {}: about {}\n", title, bytes_text(total_bytes(needs)));
  for (const ByteNeed& need : needs)
    print_text("    {:>8}  {}\n", bytes_text(need.bytes), need.what);
}

void print_flight(const std::string& stage, const ResourceEstimate& flight,
                  const RunConfig& config) {
  print_text("stage {}: {:.2f} million trained parameters, {} steps over {} positions\n", stage,
             static_cast<double>(flight.num_parameters) / 1e6, flight.num_steps,
             flight.num_positions);
  print_needs("memory", flight.memory);
  print_needs("disk", flight.disk);
  print_text(
      "  time: about {}, if every step is like the first ({} positions in {}); validation "
      "and checkpoints on top\n",
      format_duration(flight.seconds()), flight.first.positions,
      format_duration(flight.first.seconds));
  print_text(
      "  first loss, nats: the backbone itself on these answers {:.2f}; knowing nothing "
      "(ln V) {:.2f}; heads",
      flight.first.lm_head_loss, flight.first.uniform_loss);
  for (const HeadLoss& head : flight.first.heads) print_text(" {:.2f}", head.quality().loss);
  print_text("\n");
  for (const std::string& warning : warnings_of(flight, config))
    print_text("  look at this: {}\n", warning);
}

/// Whether the tokens' text is cut into them again. Behind a bos the text may begin with the space
/// that its tokenizer puts before everything.
bool comes_again(const Tokenizer& tokenizer, std::span<const TokenId> tokens) {
  const auto is_cut_into = [&](std::string_view text, std::span<const TokenId> wanted) {
    const auto again = tokenizer.encode(text, /*parse_special=*/true);
    return std::equal(again.begin(), again.end(), wanted.begin(), wanted.end());
  };
  if (is_cut_into(tokenizer.decode(tokens), tokens)) return true;
  if (!tokenizer.bos() || tokens.empty() || tokens.front() != *tokenizer.bos()) return false;
  const auto rest = tokens.subspan(1);
  const std::string text = tokenizer.decode(rest);
  return is_cut_into(text, rest) || (text.starts_with(' ') && is_cut_into(text.substr(1), rest));
}

/// What of a sample has a loss. On a terminal the answer stands out, elsewhere in brackets.
void print_mask(const RunConfig& config, const DatasetReader& dataset) {
  const auto tokenizer = load_tokenizer(config.backbone.model);
  const auto all = dataset.tokens(0), answer = dataset.answer(0);
  const auto prompt = all.first(static_cast<size_t>(dataset.answer_start(0)));
  const bool color = stdout_is_terminal();
  const auto last = prompt.last(std::min(prompt.size(), kShownTokens));
  const auto first = answer.first(std::min(answer.size(), kShownTokens));
  print_text("sample {}: {} prompt tokens without a loss, {} answer tokens with one\n",
             dataset.prompt_id(0), prompt.size(), answer.size());
  print_text("{}{}", last.size() < prompt.size() ? "…" : "", tokenizer->decode(last));
  print_bytes(color ? "\x1b[1;32m" : "[[");
  print_text("{}", tokenizer->decode(first));
  print_bytes(color ? "\x1b[0m\n" : first.size() < answer.size() ? "…]]\n" : "]]\n");
  if (!comes_again(*tokenizer, prompt))
    print_text(
        "look at this: the prompt's text encodes to other tokens: was it written with another "
        "template?\n");
}

/// What is mixed, if there are several datasets.
void print_sources(const DatasetReader& dataset) {
  if (dataset.sources().size() == 1) return;
  for (const DatasetSource& source : dataset.sources())
    print_text("{}: {} samples, each {} times an epoch\n", source.folder.string(), source.count,
               source.weight);
}

ResourceEstimate estimate_stage_resources(const RunConfig& config, const DatasetReader& dataset,
                                          StageKind stage) {
  return stage == StageKind::Heads ? estimate_heads_resources(config, dataset)
                                   : estimate_joint_resources(config, dataset);
}

}  // namespace

void print_estimate(const RunConfig& config, const DatasetReader& dataset, StageKind stage) {
  const ResourceEstimate flight = estimate_stage_resources(config, dataset, stage);
  print_note(
      "{}: {:.2f} million trained parameters, {} steps, about {} if every step is like the first; "
      "about {} of memory and {} of disk\n",
      enum_name(stage), static_cast<double>(flight.num_parameters) / 1e6, flight.num_steps,
      format_duration(flight.seconds()), bytes_text(total_bytes(flight.memory)),
      bytes_text(total_bytes(flight.disk)));
  for (const std::string& warning : warnings_of(flight, config))
    print_note("look at this: {}\n", warning);
}

void dry_run(const RunConfig& config, const DatasetReader& dataset, bool as_json) {
  Json out = Json::object();
  if (!as_json) print_sources(dataset);
  if (!as_json && dataset.size() > 0) print_mask(config, dataset);
  for (const StageKind stage : config.train.stages) {
    const ResourceEstimate flight = estimate_stage_resources(config, dataset, stage);
    const std::string name = enum_name(stage);
    if (as_json)
      out[name] = flight_json(flight, config);
    else
      print_flight(name, flight, config);
  }
  if (as_json) print_json(out);
}

}  // namespace medusa
