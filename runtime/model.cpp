#include "runtime/model.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include "backbone/files/load_weights.h"
#include "base/error.h"
#include "base/utf8.h"
#include "runtime/placement.h"

namespace medusa {
namespace {

constexpr int64_t kDefaultContext = 2048;  // tokens; a cache for more is asked for, not taken
constexpr int64_t kShortestContext = 128;  // a step's tree and what is timed before it take 66 rows

/// An ISA that was asked for by name computes, or the user hears of it.
void expect_isa(const Placement& placement, const Llama& llama) {
  if (placement.execution.isa == CpuIsa::Auto || llama.uses_pool()) return;
  throw UserError(fmt::format(
      "backbone.cpu is '{}', found a model with states of {} and heads of {} numbers, expected "
      "multiples of 32, as only these run on our kernels; leave backbone.cpu out for LibTorch's",
      enum_name(placement.execution.isa), llama.config().hidden_size, llama.config().head_size));
}

/// Refuses what the model's header shows, before its weights are read.
void check_fits(const Model& model, const ModelOptions& options, const ModelConfig& config) {
  if (model.tokenizer->vocab_size() > config.vocab_size)
    throw UserError(fmt::format(
        "{}: the tokenizer has {} tokens, expected at most the {} of the model; use the model's "
        "own tokenizer",
        model.path.string(), model.tokenizer->vocab_size(), config.vocab_size));
  if (config.context < kShortestContext)
    throw UserError(fmt::format(
        "{}: the model was trained for a context of {} tokens, expected at least {}, as trees need "
        "room; choose another model",
        model.path.string(), config.context, kShortestContext));
  if (options.context.value_or(0) > config.context)
    throw UserError(
        fmt::format("backbone.context is {}, expected at most the {} that the model was trained "
                    "for; lower it",
                    *options.context, config.context));
}

/// The model's, the tokenizer's and the template's, ascending.
std::vector<TokenId> ends_of_answers(const Model& model) {
  std::vector<TokenId> ends = model.llama->config().eos;
  if (const auto end = model.tokenizer->eos()) ends.push_back(*end);
  if (const auto turn = model.tokenizer->find(model.chat.end_of_turn())) ends.push_back(*turn);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace

void expect_model(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return std::filesystem::exists(path / name, ignored); };
  if (!has("config.json") && (has("dataset") || has("heads")))
    throw UserError(fmt::format(
        "{0}: is a run's folder, expected a model (a .gguf file, or a folder with config.json and "
        ".safetensors); name the model, and the run with --run {0}",
        path.string()));
  if (std::filesystem::exists(path, ignored)) return;
  throw UserError(fmt::format(
      "{}: no such file or folder, expected a model (a .gguf file, or a folder with config.json "
      "and .safetensors); check the path",
      path.string()));
}

void expect_loaded(const Model& model, const char* who) {
  if (model.llama) return;
  throw UserError(
      fmt::format("{}: the model is empty, expected a loaded one; call Model::load first", who));
}

void expect_named(const std::filesystem::path& place, const char* option) {
  if (place.empty())
    throw UserError(fmt::format("{}: is empty, expected a path; name one", option));
}

Model Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  expect_model(path);
  const Placement placement = place(options);
  Model model;
  model.path = path;
  model.cache_mb = options.cache_mb;
  model.progress = options.progress;
  model.tokenizer = load_tokenizer(path);
  if (options.needs_chat_template) model.chat = open_chat_template(options, *model.tokenizer);
  if (placement.blocks == QuantKind::Stored && options.note && !stores_quantized(path))
    options.note(fmt::format(
        "note: not all matrices of {} are stored in blocks; of the others blocks of 8 bits "
        "are made, as --dtype int8 does",
        path.string()));
  {
    WeightsReader reader(path, placement.dtype, placement.device, placement.blocks,
                         options.progress);
    check_fits(model, options, reader.config());
    model.llama = std::make_shared<Llama>(reader, execution_of(options, placement));
  }
  expect_isa(placement, *model.llama);
  model.eos = ends_of_answers(model);
  model.context =
      options.context.value_or(std::min(kDefaultContext, model.llama->config().context));
  return model;
}

void expect_chat_template(const Model& model, const char* who) {
  if (!model.chat.name().empty()) return;
  throw UserError(fmt::format(
      "{}: found a conversation and a model loaded without a chat template, expected one; load it "
      "with ModelOptions::needs_chat_template",
      who));
}

std::vector<TokenId> Model::encode(const std::vector<ChatMessage>& messages) const {
  expect_chat_template(*this, "Model::encode");
  for (const ChatMessage& message : messages)
    if (!is_valid_utf8(message.content))
      throw UserError(
          "the prompt: is not UTF-8, expected text in it; convert it, or give its tokens");
  return chat.encode(*tokenizer, messages);
}

BackboneTarget Model::open_target(int32_t num_sequences, int64_t rows) const {
  std::optional<int64_t> max_bytes;
  if (cache_mb) {
    max_bytes = std::llround(*cache_mb * 1e6);
    const int64_t needed = llama->cache_bytes(rows);
    if (*max_bytes < needed)
      throw UserError(
          fmt::format("backbone.cache_mb is {}, found a model whose sequences of {} tokens take "
                      "{:.1f} MB each, "
                      "expected room for at least one; raise it, or lower backbone.context",
                      *cache_mb, rows, std::ceil(static_cast<double>(needed) / 1e5) / 10));
  }
  return {*llama, num_sequences, rows, max_bytes};
}

ChatTemplate open_chat_template(const ModelOptions& options, const Tokenizer& tokenizer) {
  if (options.chat_template) return ChatTemplate::by_name(*options.chat_template);
  return ChatTemplate::of_model(tokenizer);
}

int num_threads(const Llama& llama) {
  return llama.uses_pool() ? llama.execution().num_threads() : at::get_num_threads();
}

std::string machine_text(const Llama& llama) {
  return fmt::format("{}, {} threads, {}, {}",
                     llama.device().is_cpu() ? cpu_name() : llama.device().str(),
                     num_threads(llama), llama.dtype_name(), llama.kernels());
}

}  // namespace medusa
