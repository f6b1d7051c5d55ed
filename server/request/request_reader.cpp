#include "server/request/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "data/tokenizer/tokenizer.h"
#include "infer/logits/logits_config.h"
#include "server/api/api_error.h"
#include "server/tool_calls/tool_fields.h"

namespace medusa {
namespace {

constexpr size_t kMostBiased = 300;  // as OpenAI's
constexpr size_t kMostStopTokens = 256;
constexpr double kMostBias = 100;
constexpr double kMostPenalty = 2;

/// The id that a key like "50256" names; -1: none. "050256" is none: it would be the same token's
/// second key.
int64_t id_of(const std::string& key) {
  int64_t id = -1;
  const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
  return read.ec == std::errc() && std::to_string(id) == key ? id : -1;
}

std::vector<LogitBias::Entry> read_bias(RequestFields& fields, int64_t vocab_size) {
  std::vector<LogitBias::Entry> out;
  if (!fields.has("logit_bias")) return out;
  const nlohmann::json& bias = fields.at("logit_bias");
  const std::string expected = fmt::format(
      "an object of at most {} token ids from 0 to {}, each with a number from {} to {}",
      kMostBiased, vocab_size - 1, -kMostBias, kMostBias);
  if (!bias.is_object() || bias.size() > kMostBiased) fields.refuse("logit_bias", expected);
  for (const auto& [key, value] : bias.items()) {
    const int64_t id = id_of(key);
    if (id < 0 || id >= vocab_size || !value.is_number() ||
        !(std::abs(value.get<double>()) <= kMostBias))
      fields.refuse("logit_bias", expected);
    out.emplace_back(static_cast<TokenId>(id), value.get<float>());
  }
  return out;
}

/// Reads presence_penalty, frequency_penalty, repetition_penalty, logit_bias, min_tokens and
/// allowed_token_ids.
/// @throws ApiError  400: one of them is wrong; names it.
LogitsConfig read_logits_fields(RequestFields& fields, const Tokenizer& tokenizer) {
  LogitsConfig out;
  PenaltyConfig& penalties = out.penalties;
  penalties.presence = fields.number("presence_penalty", -kMostPenalty, kMostPenalty).value_or(0);
  penalties.frequency = fields.number("frequency_penalty", -kMostPenalty, kMostPenalty).value_or(0);
  penalties.repetition = fields.number("repetition_penalty", 0.01, 100).value_or(1);
  out.bias = read_bias(fields, tokenizer.vocab_size());
  out.min_tokens = static_cast<int32_t>(fields.integer("min_tokens", 0, INT32_MAX).value_or(0));
  if (fields.has("allowed_token_ids")) {
    out.allowed = fields.token_ids("allowed_token_ids", tokenizer.vocab_size());
    if (out.allowed.empty()) fields.refuse("allowed_token_ids", "at least one token id");
    std::sort(out.allowed.begin(), out.allowed.end());
    out.allowed.erase(std::unique(out.allowed.begin(), out.allowed.end()), out.allowed.end());
  }
  return out;
}

constexpr int64_t kMostNodes = 64;  // of a step's tree

template <typename Enum>
Enum named(RequestFields& fields, const std::string& name, const std::string& value) {
  for (const auto& [word, each] : EnumNames<Enum>::values)
    if (word == value) return each;
  fields.refuse(name, enum_choices<Enum>());
}

/// What asks for the distribution or the form of the answer to be another one than this server can
/// give: refused, since an answer that ignored it would be wrong.
void refuse_what_cannot_be_followed(RequestFields& fields) {
  fields.expect_unused("suffix", "");
  fields.expect_unused("functions", nlohmann::json::array());
  fields.expect_unused("function_call", "none");
  // vLLM's and others', each with what this server does anyway.
  for (const auto& [name, harmless] : std::initializer_list<std::pair<const char*, nlohmann::json>>{
           {"add_generation_prompt", true},
           {"bad_words", nlohmann::json::array()},
           {"ban_eos_token", false},
           {"chat_template", ""},
           {"chat_template_kwargs", nlohmann::json::object()},
           {"continue_final_message", false},
           {"dry_multiplier", 0},
           {"dynatemp_range", 0},
           {"include_stop_str_in_output", false},
           {"length_penalty", 1},
           {"logits_processors", nlohmann::json::array()},
           {"max_new_tokens", nullptr},
           {"min_new_tokens", 0},
           {"mirostat", 0},
           {"mirostat_mode", 0},
           {"modalities", nlohmann::json::array({"text"})},
           {"n_predict", -1},
           {"no_repeat_ngram_size", 0},
           {"num_beams", 1},
           {"output_format", nlohmann::json::object()},
           {"prompt_embeds", nullptr},
           {"prompt_logprobs", nullptr},
           {"repeat_penalty", 1},
           {"skip_special_tokens", true},
           {"tfs_z", 1},
           {"top_n_sigma", -1},
           {"truncate_prompt_tokens", nullptr},
           {"typical_p", 1},
           {"use_beam_search", false},
           {"xtc_probability", 0}})
    fields.expect_unused(name, harmless);
  // Other servers' words for response_format, medusa.regex and medusa.grammar.
  for (const char* name :
       {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs",
        "structural_tag", "json_schema", "grammar", "ebnf", "regex"})
    if (fields.has(name))
      throw ApiError(400,
                     fmt::format("{}: not known here, expected response_format, medusa.regex or "
                                 "medusa.grammar; say by one of these how answers look",
                                 name),
                     name, "unsupported_parameter");
  for (const char* name : {"model", "user", "prompt_cache_key", "safety_identifier"})
    fields.text(name);
  fields.has_object("metadata");
  // What asks for another service, though not for another answer, is ignored with a warning.
  fields.ignore_where("service_tier", {"auto", "default", "standard_only"});
  fields.ignore_where("store", {false});
  fields.ignore_where("cache_prompt", {true});
}

/// @param own      the object medusa.
/// @param typical  thresholds that the request need not say.
void read_own_fields(RequestFields& own, const TypicalConfig& typical, GenerationRequest& out) {
  if (const auto drafter = own.text("drafter"))
    out.drafter = named<DrafterKind>(own, "drafter", *drafter);
  if (const auto nodes = own.integer("tree_size", 1, kMostNodes))
    out.tree_size = static_cast<int32_t>(*nodes);
  if (const auto rule = own.text("rule")) out.rule = named<RuleKind>(own, "rule", *rule);
  const auto epsilon = own.number("epsilon", 0, 1), delta = own.number("delta", 0, 1);
  if (epsilon || delta) {
    for (const char* name : {"epsilon", "delta"})
      if (out.rule != RuleKind::Typical && own.has(name))
        own.warn(name, "only the rule typical reads it, ignored");
    out.typical = typical;
    if (epsilon) out.typical->epsilon = *epsilon;
    if (delta) out.typical->delta = *delta;
  }
  out.steps = own.boolean("steps").value_or(false);
}

}  // namespace

RequestReader::RequestReader(const nlohmann::json& body, const ServedModel& model)
    : model_(model), fields_(body), own_(fields_.object("medusa")) {
  SamplingConfig& sampling = each_.sampling;
  sampling = model.settings.sampling;
  sampling.temperature = fields_.number("temperature", 0, 100).value_or(sampling.temperature);
  sampling.top_k =
      std::max<int64_t>(0, fields_.integer("top_k", -1, INT32_MAX).value_or(sampling.top_k));
  sampling.top_p = fields_.number("top_p", 1e-6, 1).value_or(sampling.top_p);
  sampling.min_p = fields_.number("min_p", 0, 1).value_or(sampling.min_p);
  each_.logits = read_logits_fields(fields_, model.tokenizer);
  each_.rule = model.settings.rule;
  each_.seed = static_cast<uint64_t>(
      fields_.integer("seed", INT64_MIN, INT64_MAX)
          .value_or(static_cast<int64_t>(std::random_device{}() * 0x100000001ULL)));
  each_.stop = fields_.texts("stop", kMostStops, kLongestStop);
  each_.stop_tokens = fields_.token_ids("stop_token_ids", model.tokenizer.vocab_size());
  if (each_.stop_tokens.size() > kMostStopTokens)
    fields_.refuse("stop_token_ids", fmt::format("at most {} token ids", kMostStopTokens));
  each_.ignore_eos = fields_.boolean("ignore_eos").value_or(false);
  out_.stream = fields_.boolean("stream").value_or(false);
  refuse_what_cannot_be_followed(fields_);
  if (own_) read_own_fields(*own_, model.settings.typical, each_);
  out_.steps = each_.steps;
}

void RequestReader::set_max_tokens(int64_t tokens, const char* field) {
  each_.length_field = field;
  each_.max_tokens = static_cast<int32_t>(std::min<int64_t>(tokens, INT32_MAX));
  if (each_.logits.min_tokens > each_.max_tokens)
    fields_.refuse("min_tokens", fmt::format("at most {}, {}", field, each_.max_tokens));
}

void RequestReader::set_grammar(std::optional<WantedGrammar> format, const ToolSet& tools) {
  if (own_) format = read_own_grammar(*own_, std::move(format));
  out_.may_call = tools.may_call();
  out_.grammar = grammar_with_tools(tools, std::move(format), out_.warnings);
  if (out_.grammar && each_.ignore_eos)
    fields_.refuse("ignore_eos",
                   fmt::format("false beside {}, which ends the text", out_.grammar->field));
}

/// Entries that each token of an answer may have, of those that kMostListed bounds.
int64_t RequestReader::listed_of_token() const {
  const int64_t logprobs = each_.logprobs ? *each_.logprobs + 1 : 0;
  return logprobs + (each_.steps ? int64_t{each_.tree_size.value_or(kMostNodes)} : 0);
}

void RequestReader::refuse_listed() {
  const std::string expected = fmt::format(
      "at most {} log-probabilities and nodes of trees in all prompts and answers of max_tokens, "
      "each prompt counted as often as it is answered",
      kMostListed);
  if (!each_.logprobs) own_->refuse("steps", expected);
  fields_.refuse(fields_.has("top_logprobs") ? "top_logprobs" : "logprobs", expected);
}

void RequestReader::add_choices(const std::vector<TokenId>& prompt, int64_t count,
                                const std::string& echo) {
  out_.prompt_tokens += std::ssize(prompt);
  out_.choices_per_prompt = count;
  const bool says_length = each_.max_tokens != INT32_MAX;
  const int64_t of_token = listed_of_token();
  constexpr size_t kBytesOfId = 8;  // in JSON, at most; a chat tells its prompt's once
  const bool tells_ids = out_.return_token_ids && !out_.is_chat;
  for (int64_t i = 0; i < count; ++i) {
    GenerationRequest& choice = out_.choices.emplace_back(each_);
    choice.prompt = prompt;
    choice.seed = each_.seed + static_cast<uint64_t>(i);
    const int64_t room = std::max<int64_t>(1, model_.context - std::ssize(prompt));
    choice.fills_context = choice.max_tokens > room;
    if (choice.fills_context) choice.max_tokens = static_cast<int32_t>(room);
    if (of_token > 0) {
      const int64_t fair = kMostListed / (count * of_token);
      if (!says_length && choice.max_tokens > fair) {
        choice.max_tokens = static_cast<int32_t>(fair);
        choice.fills_context = false;
      }
      num_listed_ +=
          of_token * (choice.max_tokens + (each_.prompt_logprobs ? std::ssize(prompt) : 0));
    }
    if (num_listed_ > kMostListed) refuse_listed();
    echoed_bytes_ += echo.size() + (tells_ids ? kBytesOfId * prompt.size() : 0);
    if (echoed_bytes_ > kMostEchoedBytes)
      fields_.refuse(echo.empty() ? "return_token_ids" : "echo",
                     fmt::format("at most {} bytes of prompts in all answers", kMostEchoedBytes));
    out_.echoes.push_back(echo);
  }
}

void RequestReader::add_chat(const std::vector<ChatMessage>& messages, const ToolSet& tools,
                             int64_t count, const char* field) {
  each_.prompt_field = field;
  add_choices(encode_chat(model_, messages, tools, field), count, "");
}

CompletionRequest RequestReader::finish() {
  fields_.warn_of_unknown();
  if (own_) own_->warn_of_unknown();
  out_.warnings.insert(out_.warnings.begin(), fields_.warnings().begin(), fields_.warnings().end());
  return std::move(out_);
}

void expect_served_model(RequestFields& fields, const ServedModel& model) {
  const auto asked = fields.text("model");
  if (asked && *asked != model.name) throw unknown_model(*asked, model.name);
}

void expect_short_text(size_t bytes, const std::string& field, const ServedModel& model) {
  constexpr size_t kAlwaysShort = 1 << 20, kPerToken = 32;
  const size_t most = std::max(kAlwaysShort, kPerToken * static_cast<size_t>(model.context));
  if (bytes > most)
    throw ApiError(
        400, fmt::format("{} has {} bytes, expected at most {}; shorten it", field, bytes, most),
        field, "context_length_exceeded");
}

std::vector<TokenId> encode_chat(const ServedModel& model, const std::vector<ChatMessage>& messages,
                                 const ToolSet& tools, const char* field) {
  if (!model.has_chat)
    throw ApiError(400,
                   fmt::format("{}: the model has no chat template, expected one that makes a "
                               "prompt of messages; ask /v1/completions, or start the server with "
                               "--set backbone.chat_template=NAME",
                               field),
                   field, "no_chat_template");
  expect_tools_can_be_written(tools, model.chat.takes_tools());
  size_t bytes = tools.declaration().size();
  for (const ChatMessage& message : messages) {
    bytes += message.content.size();
    for (const ToolCall& call : message.tool_calls) bytes += call.arguments.size();
  }
  expect_short_text(bytes, field, model);
  const auto encode = [&](const std::string& declaration) {
    return model.chat.encode(model.tokenizer, messages, declaration);
  };
  try {
    return encode(tools.declaration());
  } catch (const UserError& error) {  // the model's own template refuses the conversation
    bool only_with_tools = tools.may_call();
    if (only_with_tools) try {
        encode("");
      } catch (const UserError&) {
        only_with_tools = false;
      }
    throw ApiError(400, error.what(), only_with_tools ? "tools" : field);
  }
}

}  // namespace medusa
