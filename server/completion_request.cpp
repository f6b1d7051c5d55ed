#include "server/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "server/api_error.h"
#include "server/chat_messages.h"
#include "server/logits_fields.h"
#include "server/request_fields.h"
#include "server/tool_fields.h"

namespace medusa {
namespace {

constexpr int64_t kMostChoices = 16;  // answers of one request
constexpr size_t kMostStops = 16;
constexpr int64_t kMostLogprobs = 20;
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
  fields.ignore({"model", "user", "metadata", "store", "service_tier", "cache_prompt",
                 "prompt_cache_key", "safety_identifier"});
}

/// @param own  the object medusa.
void read_own_fields(RequestFields* own, GenerationRequest& out) {
  if (own == nullptr) return;
  if (const auto drafter = own->text("drafter"))
    out.drafter = named<DrafterKind>(*own, "drafter", *drafter);
  if (const auto nodes = own->integer("tree_size", 1, kMostNodes))
    out.tree_size = static_cast<int32_t>(*nodes);
  if (const auto rule = own->text("rule")) out.rule = named<RuleKind>(*own, "rule", *rule);
  const auto epsilon = own->number("epsilon", 0, 1), delta = own->number("delta", 0, 1);
  if (epsilon || delta) {
    out.typical.emplace();
    if (epsilon) out.typical->epsilon = *epsilon;
    if (delta) out.typical->delta = *delta;
  }
  out.steps = own->boolean("steps").value_or(false);
}

/// What chats and completions have in common.
/// @returns  how many answers each prompt gets.
int64_t read_common(RequestFields& fields, std::string_view text, const ServedModel& model,
                    GenerationRequest& each, CompletionRequest& out) {
  SamplingConfig& sampling = each.sampling;
  sampling = model.settings.sampling;
  sampling.temperature = fields.number("temperature", 0, 100).value_or(sampling.temperature);
  sampling.top_k =
      std::max<int64_t>(0, fields.integer("top_k", -1, INT32_MAX).value_or(sampling.top_k));
  sampling.top_p = fields.number("top_p", 1e-6, 1).value_or(sampling.top_p);
  sampling.min_p = fields.number("min_p", 0, 1).value_or(sampling.min_p);
  each.logits = read_logits_fields(fields, model.tokenizer);
  each.rule = model.settings.rule;
  each.seed = static_cast<uint64_t>(
      fields.integer("seed", INT64_MIN, INT64_MAX)
          .value_or(static_cast<int64_t>(std::random_device{}() * 0x100000001ULL)));
  each.stop = fields.texts("stop", kMostStops);
  each.stop_tokens = fields.token_ids("stop_token_ids", model.tokenizer.vocab_size());
  each.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  out.stream = fields.boolean("stream").value_or(false);
  if (auto options = fields.object("stream_options")) {
    out.include_usage = options->boolean("include_usage").value_or(false);
    out.continuous_usage = options->boolean("continuous_usage_stats").value_or(false);
    out.warnings = options->unknown();
  }
  out.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  refuse_what_cannot_be_followed(fields);
  auto own = fields.object("medusa");
  read_own_fields(own ? &*own : nullptr, each);
  out.steps = each.steps;
  out.grammar = read_grammar_fields(fields, own ? &*own : nullptr, text);
  if (own) {
    const auto more = own->unknown();
    out.warnings.insert(out.warnings.end(), more.begin(), more.end());
  }
  const int64_t count = fields.integer("n", 1, kMostChoices).value_or(1);
  if (fields.integer("best_of", 1, INT32_MAX).value_or(count) != count)
    fields.refuse("best_of", "as many as n: every answer is returned");
  return count;
}

void expect_end_of_grammar(const RequestFields& fields, const GenerationRequest& each,
                           const CompletionRequest& out) {
  if (out.grammar && each.ignore_eos)
    fields.refuse("ignore_eos",
                  fmt::format("false beside {}, which ends the text", out.grammar->field));
}

void expect_room_for_min_tokens(const RequestFields& fields, const GenerationRequest& each) {
  if (each.logits.min_tokens > each.max_tokens)
    fields.refuse("min_tokens", fmt::format("at most max_tokens, {}", each.max_tokens));
}

/// Adds the answers to one prompt. The first has the seed itself, so that it is the text of that
/// seed; the others have the seeds after it.
void add_choices(const GenerationRequest& each, const std::vector<TokenId>& prompt, int64_t count,
                 const std::string& echo, const ServedModel& model, CompletionRequest& out) {
  out.prompt_tokens += std::ssize(prompt);
  out.choices_per_prompt = count;
  for (int64_t i = 0; i < count; ++i) {
    GenerationRequest& choice = out.choices.emplace_back(each);
    choice.prompt = prompt;
    choice.seed = each.seed + static_cast<uint64_t>(i);
    const int64_t room = std::max<int64_t>(1, model.context - std::ssize(prompt));
    choice.max_tokens = static_cast<int32_t>(std::min<int64_t>(choice.max_tokens, room));
    out.echoes.push_back(echo);
  }
}

void finish(const RequestFields& fields, CompletionRequest& out) {
  const auto unknown = fields.unknown();
  out.warnings.insert(out.warnings.end(), unknown.begin(), unknown.end());
  for (std::string& name : out.warnings) name += ": unknown field, ignored";
}

/// The prompts of a completion: a text, token ids, or a list of either.
std::vector<std::vector<TokenId>> read_prompts_of(RequestFields& fields, const ServedModel& model) {
  const std::string expected =
      "a text, a list of texts, a list of token ids, or a list of such lists; none empty";
  if (!fields.has("prompt")) fields.refuse("prompt", expected);
  const auto ids_of = [&](const nlohmann::json& list) {
    std::vector<TokenId> ids;
    for (const nlohmann::json& id : list) {
      if (!id.is_number_integer() || id < 0 || id >= model.tokenizer.vocab_size())
        fields.refuse("prompt", fmt::format("token ids from 0 to {}, or texts",
                                            model.tokenizer.vocab_size() - 1));
      ids.push_back(id.get<TokenId>());
    }
    return ids;
  };
  const auto tokens_of = [&](const nlohmann::json& prompt) {
    std::vector<TokenId> ids;
    if (prompt.is_string()) {
      ids = model.tokenizer.encode(prompt.get<std::string>(), true);
      if (model.tokenizer.adds_bos() && model.tokenizer.bos())
        ids.insert(ids.begin(), *model.tokenizer.bos());
    } else if (prompt.is_array()) {
      ids = ids_of(prompt);
    }
    if (ids.empty()) fields.refuse("prompt", expected);
    return ids;
  };
  const nlohmann::json& prompt = fields.at("prompt");
  const bool is_one = !prompt.is_array() || (!prompt.empty() && prompt[0].is_number());
  if (is_one) return {tokens_of(prompt)};
  if (prompt.empty() || prompt.size() > 64) fields.refuse("prompt", "1 to 64 prompts");
  std::vector<std::vector<TokenId>> out;
  for (const nlohmann::json& each : prompt) out.push_back(tokens_of(each));
  return out;
}

}  // namespace

std::vector<TokenId> encode_chat(const ServedModel& model, const std::vector<ChatMessage>& messages,
                                 const ToolSet& tools, const char* field) {
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

CompletionRequest read_chat_request(const nlohmann::json& body, std::string_view text,
                                    const ServedModel& model) {
  RequestFields fields(body);
  CompletionRequest out;
  out.is_chat = true;
  GenerationRequest each;
  const int64_t count = read_common(fields, text, model, each, out);
  const auto most = fields.integer("max_tokens", 1, INT32_MAX);
  each.max_tokens = static_cast<int32_t>(
      fields.integer("max_completion_tokens", 1, INT32_MAX).value_or(most.value_or(INT32_MAX)));
  expect_room_for_min_tokens(fields, each);
  const bool wants = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMostLogprobs);
  if (top && !wants) fields.refuse("top_logprobs", "logprobs to be true beside it");
  if (wants) each.logprobs = top.value_or(0);
  const ToolSet tools = read_tool_fields(fields, text);
  expect_tools_can_be_written(tools, model.chat.takes_tools());
  out.may_call = tools.may_call();
  out.grammar = grammar_with_tools(tools, std::move(out.grammar));
  expect_end_of_grammar(fields, each, out);
  const auto messages = read_chat_messages(fields, "messages", model.chat.takes_tools());
  const std::vector<TokenId> prompt = encode_chat(model, messages, tools, "messages");
  add_choices(each, prompt, count, "", model, out);
  finish(fields, out);
  return out;
}

CompletionRequest read_completion_request(const nlohmann::json& body, std::string_view text,
                                          const ServedModel& model) {
  RequestFields fields(body);
  CompletionRequest out;
  GenerationRequest each;
  const int64_t count = read_common(fields, text, model, each, out);
  fields.expect_unused("tools", nlohmann::json::array());
  fields.expect_unused("tool_choice", "none");
  fields.ignore({"parallel_tool_calls"});
  expect_end_of_grammar(fields, each, out);
  each.max_tokens = static_cast<int32_t>(fields.integer("max_tokens", 1, INT32_MAX).value_or(16));
  expect_room_for_min_tokens(fields, each);
  each.logprobs = fields.integer("logprobs", 0, kMostLogprobs);
  const bool echo = fields.boolean("echo").value_or(false);
  each.prompt_logprobs = echo && each.logprobs;
  for (const std::vector<TokenId>& prompt : read_prompts_of(fields, model))
    add_choices(each, prompt, count, echo ? model.tokenizer.decode(prompt) : "", model, out);
  finish(fields, out);
  return out;
}

}  // namespace medusa
